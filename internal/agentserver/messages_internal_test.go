package agentserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/web"
)

// newBoundTranslator makes a translator whose server holds at most some bytes for clients.
func newBoundTranslator(t *testing.T, most int) *translator {
	t.Helper()
	listener := web.NewListener()
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	door := web.NewDoor(web.DoorOptions{Listener: listener, MaxUnread: most})
	c := &call{server: &Server{opts: Options{Door: door}}}
	return newTranslator(c, &graphdv1.Run{}, "run", &leg{Modes: []string{"messages"}})
}

func newPieceEvent(id int, text string) *graphdv1.Event {
	piece := fmt.Sprintf(`{"id":"m%d","type":"AIMessageChunk","content":%q}`, id, text)
	return &graphdv1.Event{Kind: &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{Value: newPayload(json.RawMessage(piece))}}}
}

func TestWhatIsKeptOfMessagesIsBounded(t *testing.T) {
	for name, text := range map[string]string{"many": "", "large": strings.Repeat("x", 100)} {
		t.Run(name, func(t *testing.T) {
			shown := newBoundTranslator(t, 4*heldStep)
			var err error
			for n := 0; err == nil && n < 100_000; n++ {
				id := n
				if text != "" {
					id = 0 // one message that grows
				}
				_, _, err = shown.translate(newPieceEvent(id, text))
			}
			require.Error(t, err)
			require.LessOrEqual(t, shown.messages.size, 4*heldStep+1000)

			shown.call.releaseGathered()
			require.NoError(t, shown.call.holdGathered(4*heldStep), "all is given back")
		})
	}
}
