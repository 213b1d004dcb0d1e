package argument_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

var now = time.Date(2026, 11, 27, 9, 0, 0, 0, time.FixedZone("CET", 3600))

func TestFlagsBecomeAQuery(t *testing.T) {
	all := argument.Questions{Mine: true, Group: `a"b\c`, Graph: "refund", Due: "2h", Priority: "Urgent", ClaimedBy: "ana", Sort: argument.SortDue}
	query, err := all.ParseQuery(now)
	require.NoError(t, err)
	require.Equal(t, `graph = "refund" AND group = "a\"b\\c" AND claimed_by = "ana" AND mine = "true" AND priority = "URGENT" AND due < "2026-11-27T10:00:00Z"`,
		argument.JoinConditions(" ", query.Conditions...))
	require.Equal(t, query.Conditions[:5], query.Counted, "a server does not count by due time")
	require.Equal(t, argument.OrderByDue, query.OrderBy)

	query, err = (&argument.Questions{Priority: "normal"}).ParseQuery(now)
	require.NoError(t, err)
	require.Empty(t, query.Counted, "nor by the priority that most have")
	query, err = (&argument.Questions{}).ParseQuery(now)
	require.NoError(t, err)
	require.Zero(t, query)
}

func TestDueTakesDurationsAndTimes(t *testing.T) {
	for text, want := range map[string]string{
		"0s": "2026-11-27T08:00:00Z", "-30m": "2026-11-27T07:30:00Z", "1h30m": "2026-11-27T09:30:00Z", "3d": "2026-11-30T08:00:00Z",
		"2026-11-28": "2026-11-27T23:00:00Z", "2026-11-28 09:00": "2026-11-28T08:00:00Z", "2026-11-28 09:00:01": "2026-11-28T08:00:01Z",
		"2026-11-28T09:00:00Z": "2026-11-28T09:00:00Z", "2026-11-28T09:00:00.5+01:00": "2026-11-28T08:00:00.5Z",
	} {
		query, err := (&argument.Questions{Due: text}).ParseQuery(now)
		require.NoError(t, err, text)
		require.Equal(t, []string{`due < "` + want + `"`}, query.Conditions, text)
	}
	for _, text := range []string{"soon", "2", "h", "d", "99999999d", "2026-13-01", "1500-01-01", "2262-01-02"} {
		_, err := (&argument.Questions{Due: text}).ParseQuery(now)
		require.ErrorContains(t, err, "--due", text)
		require.Equal(t, exit.CodeUsage, exit.CodeOf(err))
	}
}

func TestFiltersAreJoined(t *testing.T) {
	require.Empty(t, argument.JoinConditions(""))
	require.Equal(t, "a", argument.JoinConditions("a"))
	require.Equal(t, "a AND b AND c", argument.JoinConditions("a", "b", "c"))
}
