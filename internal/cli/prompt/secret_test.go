package prompt_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/prompt"
)

const secretSchema = `{"type":"object","required":["card","ok"],"properties":{
	"card":{"type":"string","maxLength":12},"ok":{"type":"boolean"},"owner":{"type":"object","properties":{"pin":{"type":"integer"},"name":{"type":"string"}}}}}`

// askSecret asks a question with secret parts. What is typed unseen comes from hidden, everything else
// from typed.
func askSecret(t *testing.T, schema string, secret, hidden []string, typed string) (answer, screen string, err error) {
	t.Helper()
	var out bytes.Buffer
	streams := output.IO{
		In: iotest.OneByteReader(strings.NewReader(typed)), Out: &out, Err: &out, IsTerminal: true,
		Edit: func(context.Context, string) (string, error) { return "", errors.New("the editor was started") },
	}
	if hidden != nil {
		streams.ReadHidden = func(context.Context) (string, error) {
			require.NotEmpty(t, hidden, "%s", out.String())
			line := hidden[0]
			hidden = hidden[1:]
			return line, nil
		}
	}
	o := output.Output{IO: streams}
	p := prompt.NewPrompter(o.NewPrinter(), streams)
	answer, err = p.AskInterrupt(t.Context(), &graphdv1.Interrupt{
		Node: "pay", ResponseSchema: newJSON(schema), Secret: secret, Value: newJSON(`{"card": {"__redacted__": true}}`),
	})
	require.Empty(t, hidden, "%s", out.String())
	return answer, out.String(), err
}

func TestSecretFieldsAreTypedUnseen(t *testing.T) {
	answer, screen, err := askSecret(t, secretSchema, []string{"/card", "/owner/pin"}, []string{"4111-4111-4111", "4111-4111", "x77", "7777"}, "y\ny\nana\ny\n")
	require.NoError(t, err)
	require.JSONEq(t, `{"card":"4111-4111","ok":true,"owner":{"pin":7777,"name":"ana"}}`, answer)
	require.NotContains(t, screen, "4111")
	require.NotContains(t, screen, "77")
	require.Contains(t, screen, "card  (secret)")
	require.Contains(t, screen, "    card        (secret)\n    ok          true\n    owner.pin   (secret)\n    owner.name  ana\n")
}

func TestSecretWholeAnswerIsTypedUnseen(t *testing.T) {
	answer, screen, err := askSecret(t, `{"type":"string","maxLength":9}`, []string{""}, []string{":edit", "4111-4111-4111", "4111-4111"}, "y\n")
	require.NoError(t, err)
	require.Equal(t, `"4111-4111"`, answer)
	require.NotContains(t, screen, "4111")
	require.Contains(t, screen, "send (secret)?")
	require.Contains(t, screen, "is not written to a file")
}

// Without a terminal that hides what is typed the answer can be given all the same.
func TestSecretsWithoutATerminalThatHides(t *testing.T) {
	answer, screen, err := askSecret(t, secretSchema, []string{"/card"}, nil, "4111\ny\nn\ny\n")
	require.NoError(t, err)
	require.JSONEq(t, `{"card":"4111","ok":true}`, answer)
	require.NotContains(t, screen, "4111")
}

func TestSecretsAreNotInTheEditor(t *testing.T) {
	_, screen, err := askSecret(t, secretSchema, []string{"/card"}, []string{":edit", ":quit"}, "")
	require.ErrorIs(t, err, prompt.ErrNoAnswer)
	require.NotContains(t, screen, "the editor was started")
}

func newJSON(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}
