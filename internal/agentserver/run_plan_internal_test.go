package agentserver

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

func TestAnAnswerWithoutAnIDFitsTheOneQuestionThatWasOpen(t *testing.T) {
	only, err := newSingleResponse([]byte(`"yes"`), map[string]string{"q": "etag"})
	require.NoError(t, err)
	require.Equal(t, "etag", only.GetEtag())

	_, err = newSingleResponse([]byte(`"yes"`), nil)
	require.Equal(t, "THREAD_NOT_INTERRUPTED", reasonOf(err), "a question may open before the answer arrives")

	several, err := newSingleResponse([]byte(`"yes"`), map[string]string{"q": "etag", "r": "other"})
	require.NoError(t, err)
	require.Equal(t, closedQuestion, several.GetEtag(), "one of them may be answered before the answer arrives")
}

// thread600 is a thread of 600 open questions, of which its run shows the first 500.
type thread600 struct{ graphdv1.ThreadServiceClient }

func listOpen(n int) []*graphdv1.Interrupt {
	open := make([]*graphdv1.Interrupt, n)
	for i := range open {
		open[i] = &graphdv1.Interrupt{InterruptId: strconv.Itoa(i), State: graphdv1.InterruptState_INTERRUPT_STATE_OPEN, Etag: "1"}
	}
	return open
}

func (thread600) GetThread(context.Context, *graphdv1.GetThreadRequest, ...grpc.CallOption) (*graphdv1.Thread, error) {
	return &graphdv1.Thread{Interrupts: listOpen(600)}, nil
}

func TestAllOpenQuestionsCanBeAnswered(t *testing.T) {
	c := &call{ctx: t.Context(), threads: thread600{}}
	for name, shown := range map[string]int{"more than a run shows": mostInRun, "too large for a message": 0} {
		run := &graphdv1.Run{Interrupts: listOpen(shown), OpenInterruptIds: make([]string, mostInRun)}
		etags, err := c.openEtags(run)
		require.NoError(t, err, name)
		require.Len(t, etags, 600, name)
	}
	etags, err := c.openEtags(&graphdv1.Run{Interrupts: listOpen(2), OpenInterruptIds: make([]string, 2)})
	require.NoError(t, err)
	require.Len(t, etags, 2, "the thread is not read")
}
