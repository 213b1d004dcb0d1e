package cli_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/trail"
)

// claimedTrail is what a server tells of a question that was asked, claimed and voted on.
func claimedTrail(t *testing.T) (entries []*graphdv1.TrailEntry) {
	t.Helper()
	at := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	var log trail.Log
	log.Append(trail.Entry{Time: at, Kind: trail.Asked})
	log.Append(trail.Entry{Time: at.Add(time.Minute), Kind: trail.Claimed, Principal: "ana"})
	log.Append(trail.Entry{Time: at.Add(time.Hour), Kind: trail.Voted, Principal: "ana", Agrees: true, Value: "true"})
	list, err := log.Entries()
	require.NoError(t, err)
	kinds := []graphdv1.TrailKind{
		graphdv1.TrailKind_TRAIL_KIND_ASKED, graphdv1.TrailKind_TRAIL_KIND_CLAIMED, graphdv1.TrailKind_TRAIL_KIND_VOTED,
	}
	for i := range list {
		e := &list[i]
		entries = append(entries, &graphdv1.TrailEntry{
			Number: uint32(e.Number), Time: timestamppb.New(e.Time), Kind: kinds[i], Principal: e.Principal, Record: e.Record, Digest: e.Digest,
		})
	}
	return entries
}

// A trail that is not what it was fails its check, which names the entry. Without the check it is
// shown.
func TestTrailsAreVerified(t *testing.T) {
	for name, c := range map[string]struct {
		change func(entries []*graphdv1.TrailEntry) []*graphdv1.TrailEntry
		number int // of the entry that is named, 0 = all is well
	}{
		"whole":         {func(e []*graphdv1.TrailEntry) []*graphdv1.TrailEntry { return e }, 0},
		"the first":     {changeRecord(0), 1},
		"the second":    {changeRecord(1), 2},
		"the last":      {changeRecord(2), 3},
		"one is gone":   {func(e []*graphdv1.TrailEntry) []*graphdv1.TrailEntry { return slices.Delete(e, 1, 2) }, 1},
		"two in turn":   {func(e []*graphdv1.TrailEntry) []*graphdv1.TrailEntry { e[1], e[2] = e[2], e[1]; return e }, 1},
		"a new ending":  {appendForged, 3},
		"another start": {func(e []*graphdv1.TrailEntry) []*graphdv1.TrailEntry { return e[1:] }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scriptedServer{
				interrupts: []*graphdv1.Interrupt{newPayInterrupt("one", `1`, func(q *graphdv1.Interrupt) { q.TrailSize = 3 })},
				trail:      c.change(claimedTrail(t)),
			}
			for _, format := range []output.Format{output.Text, output.JSON} {
				session, out := newSession(t, s, "")
				session.Format = format
				err := session.ShowTrail(t.Context(), cli.QuestionName{Thread: "t1"}, true)
				if c.number == 0 {
					require.NoError(t, err)
					require.Contains(t, out.String(), "3 entries, each follows the one before; the digest of the last is "+s.trail[2].GetDigest())
					continue
				}
				var broken *trail.BrokenError
				require.ErrorAs(t, err, &broken)
				require.Equal(t, c.number, broken.Number, "%v", err)
				require.Equal(t, exit.CodeError, exit.CodeOf(err))
				require.NotContains(t, out.String(), "each follows the one before")
			}
			session, _ := newSession(t, s, "")
			require.NoError(t, session.ShowTrail(t.Context(), cli.QuestionName{Thread: "t1"}, false))
		})
	}
}

// changeRecord changes one byte of an entry.
func changeRecord(i int) func([]*graphdv1.TrailEntry) []*graphdv1.TrailEntry {
	return func(entries []*graphdv1.TrailEntry) []*graphdv1.TrailEntry {
		record := []byte(entries[i].GetRecord())
		record[len(record)-3] ^= 1
		entries[i].Record = string(record)
		return entries
	}
}

// appendForged appends an entry that follows no other.
func appendForged(entries []*graphdv1.TrailEntry) []*graphdv1.TrailEntry {
	return append(entries, &graphdv1.TrailEntry{Number: 4, Record: `{"number":4,"kind":"answered","principal":"eve"}`})
}

// A server that finds the damage itself says so, and nothing of the trail is shown.
func TestADamagedTrailIsNotShown(t *testing.T) {
	s := &scriptedServer{
		interrupts: []*graphdv1.Interrupt{newPayInterrupt("one", `1`, nil)}, trail: claimedTrail(t),
		trailErr: refusedError(codes.DataLoss, "CHECKPOINT_CORRUPT"),
	}
	session, out := newSession(t, s, "")
	err := session.ShowTrail(t.Context(), cli.QuestionName{Thread: "t1"}, true)
	require.Equal(t, "CHECKPOINT_CORRUPT", report.Reason(err))
	require.Empty(t, out.String())
}
