package crons_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/crons"
)

func TestTimesOfSchedules(t *testing.T) {
	for name, c := range map[string]struct{ schedule, zone, after, want string }{
		"each minute":                      {"* * * * *", "", "2026-03-01T10:00:00Z", "2026-03-01T10:01:00Z"},
		"after its time":                   {"* * * * *", "", "2026-03-01T10:00:59.9Z", "2026-03-01T10:01:00Z"},
		"steps":                            {"*/15 8-9 * * *", "", "2026-03-01T09:45:00Z", "2026-03-02T08:00:00Z"},
		"weekdays":                         {"0 9 * * 1-5", "", "2026-02-27T09:00:00Z", "2026-03-02T09:00:00Z"},
		"names":                            {"0 9 * MAR MON", "", "2026-01-01T00:00:00Z", "2026-03-02T09:00:00Z"},
		"7 is Sunday":                      {"0 9 * * 7", "", "2026-03-02T00:00:00Z", "2026-03-08T09:00:00Z"},
		"to Sunday":                        {"0 9 * * 6-7", "", "2026-03-07T10:00:00Z", "2026-03-08T09:00:00Z"},
		"a day or a weekday":               {"0 0 13 * 5", "", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z"},
		"a leap day":                       {"0 0 29 2 *", "", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		"in a zone":                        {"0 9 * * *", "Europe/Berlin", "2026-01-01T12:00:00Z", "2026-01-02T08:00:00Z"},
		"in a zone in summer":              {"0 9 * * *", "Europe/Berlin", "2026-07-01T12:00:00Z", "2026-07-02T07:00:00Z"},
		"an hour that is skipped":          {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		"an hour that comes twice":         {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"the second time of that hour":     {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		"the day behind that hour":         {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
		"a word":                           {"@weekly", "", "2026-03-02T00:00:00Z", "2026-03-08T00:00:00Z"},
		"spaces around and between fields": {"  0  9 *  * * ", "", "2026-01-01T12:00:00Z", "2026-01-02T09:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := crons.ParseSchedule(c.schedule, c.zone)
			require.NoError(t, err)
			after, err := time.Parse(time.RFC3339Nano, c.after)
			require.NoError(t, err)
			require.Equal(t, c.want, s.NextTime(after).Format(time.RFC3339))
		})
	}
}

func TestSchedulesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ schedule, zone, field string }{
		"nothing":         {"", "", "cron.schedule"},
		"seconds":         {"0 * * * * *", "", "cron.schedule"},
		"four fields":     {"* * * *", "", "cron.schedule"},
		"a descriptor":    {"@every 1m", "", "cron.schedule"},
		"a zone in it":    {"TZ=UTC * * * *", "", "cron.schedule"},
		"five with zone":  {"CRON_TZ=UTC * * * * *", "", "cron.schedule"},
		"minute 60":       {"60 * * * *", "", "cron.schedule"},
		"weekday 8":       {"0 0 * * 8", "", "cron.schedule"},
		"text":            {"a b c d e", "", "cron.schedule"},
		"too long":        {"0 0 1 1 " + string(make([]byte, 300)), "", "cron.schedule"},
		"unknown zone":    {"* * * * *", "Mars/Olympus", "cron.time_zone"},
		"the local zone":  {"* * * * *", "Local", "cron.time_zone"},
		"a file":          {"* * * * *", "../../etc/passwd", "cron.time_zone"},
		"an offset":       {"* * * * *", "+02:00", "cron.time_zone"},
		"a step of zero":  {"*/0 * * * *", "", "cron.schedule"},
		"a range in vain": {"9-8 * * * *", "", "cron.schedule"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := crons.ParseSchedule(c.schedule, c.zone)
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInvalidField})
			require.ErrorContains(t, err, c.field)
			require.ErrorContains(t, err, "want")
		})
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, text := range []string{"* * * * *", "0 9 * * 1-5", "*/15 8-9 1,2 JAN-MAR 7", "? ? ? ? ?"} {
		f.Add(text)
	}
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := crons.ParseSchedule(text, "Europe/Berlin")
		if err != nil {
			return
		}
		if next := s.NextTime(now); !next.IsZero() && !next.After(now) {
			t.Fatalf("%q fires at %s", text, next)
		}
	})
}
