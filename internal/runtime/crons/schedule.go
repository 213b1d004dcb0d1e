package crons

import (
	"strings"
	"time"
	_ "time/tzdata" // an image without the database of time zones fires at the same times

	"github.com/robfig/cron/v3"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// maxScheduleBytes bounds the text of a schedule.
const maxScheduleBytes = 256

// Fields of errors.
const (
	fieldSchedule = "cron.schedule"
	fieldTimeZone = "cron.time_zone"
	fieldEnd      = "cron.end_time"
)

// Schedule is a schedule that was read.
type Schedule struct {
	spec cron.Schedule
	zone *time.Location
}

// ParseSchedule reads a schedule of five fields, or a word like @daily, in a time zone, "" = UTC. The
// error is INVALID_FIELD.
func ParseSchedule(text, zone string) (Schedule, error) {
	location, err := loadZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	if len(text) > maxScheduleBytes {
		return Schedule{}, newFieldError(fieldSchedule, "has %d bytes: want at most %d", len(text), maxScheduleBytes)
	}
	fields := strings.Fields(expandAlias(text))
	if len(fields) != 5 || strings.ContainsAny(fields[0], "@=") {
		return Schedule{}, newFieldError(fieldSchedule, `is %.100q: want the five fields "MINUTE HOUR DAY MONTH WEEKDAY", as "0 9 * * 1-5"`, text)
	}
	fields[4] = foldSunday(fields[4])
	spec, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(strings.Join(fields, " "))
	if err != nil {
		return Schedule{}, newFieldError(fieldSchedule, `is %.100q: %s; want the five fields "MINUTE HOUR DAY MONTH WEEKDAY", as "0 9 * * 1-5"`, text, err)
	}
	return Schedule{spec, location}, nil
}

// expandAlias returns the five fields that a word stands for, and another text as it is.
func expandAlias(text string) string {
	switch strings.TrimSpace(text) {
	case "@hourly":
		return "0 * * * *"
	case "@daily", "@midnight":
		return "0 0 * * *"
	case "@weekly":
		return "0 0 * * 0"
	case "@monthly":
		return "0 0 1 * *"
	case "@yearly", "@annually":
		return "0 0 1 1 *"
	}
	return text
}

// loadZone finds a time zone. The zone of the machine is none: servers may have several.
func loadZone(name string) (*time.Location, error) {
	location, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, newFieldError(fieldTimeZone, "is %.100q: want a name of the IANA database, as Europe/Berlin, or none for UTC", name)
	}
	return location, nil
}

// foldSunday writes 7, which stands for Sunday as 0 does, as the parser knows it.
func foldSunday(field string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		if part == "7" {
			parts[i] = "0"
		} else if first, isRange := strings.CutSuffix(part, "-7"); isRange && first != "7" {
			parts[i] = first + "-6,0"
		}
	}
	return strings.Join(parts, ",")
}

// NextTime returns the first time of the schedule after a time, zero when there is none.
func (s Schedule) NextTime(after time.Time) time.Time {
	next := s.spec.Next(after.In(s.zone))
	if next.IsZero() {
		return time.Time{}
	}
	return next.UTC()
}

func newFieldError(field, format string, args ...any) error {
	return runtime.Errorf(runtime.ReasonInvalidField, field+" "+format, args...).With("field", field).WithViolation(field, format, args...)
}
