package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Statistics have each question of a run once, whatever happens to its answer.
func TestStatisticsFollowAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newSingleUndoCase(t)
		read := func() runtime.QuestionCounts {
			return u.engine.ReadQuestionStatistics(runtime.StatisticsQuery{Tenant: "default", Interval: time.Hour}).All.Total
		}
		require.Equal(t, runtime.QuestionCounts{Asked: 1}, read())
		sleepVirtual(10 * time.Minute)
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverPartial))
		require.Equal(t, runtime.QuestionCounts{Asked: 1, Answered: 1}, read())
		require.NoError(t, u.retract("ana", "ask"))
		require.Equal(t, runtime.QuestionCounts{Asked: 1}, read())
		require.NoError(t, u.answer("ana", "ask", `"no"`, runtime.CoverPartial))
		sleepVirtual(2 * undoTime)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
		require.Equal(t, runtime.QuestionCounts{Asked: 1, Answered: 1}, read())
		answers := u.engine.ReadAnswerStatistics("default", "g", "ask")
		require.Equal(t, int64(1), answers.Answered)
		require.InDelta(t, 10*time.Minute, answers.Waits.Median, float64(5*time.Minute))
	})
}
