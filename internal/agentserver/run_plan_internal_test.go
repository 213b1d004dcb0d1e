package agentserver

import (
	"testing"

	"github.com/stretchr/testify/require"
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
