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

// A secret field keeps no other field from the editor.
func TestOtherFieldsAreWrittenInTheEditor(t *testing.T) {
	const schema = `{"type":"object","required":["card","why"],"properties":{"card":{"type":"string"},"why":{"type":"string"},
		"owner":{"type":"object","properties":{"pin":{"type":"integer"},"name":{"type":"string"}}}}}`
	_, screen, err := askSecret(t, schema, []string{"/card", "/owner/pin"}, []string{"4111"}, ":edit\nlate\n:edit\n:quit\n")
	require.ErrorIs(t, err, prompt.ErrNoAnswer)
	require.Equal(t, 1, strings.Count(screen, "the editor was started"), "%s", screen)
	require.Equal(t, 1, strings.Count(screen, "is not written to a file"), "an object with a secret field: %s", screen)
}

// Secret parts of what the question shows alone hide nothing of the answer.
func TestSecretsOfTheQuestionHideNothingOfTheAnswer(t *testing.T) {
	for name, c := range map[string]struct{ schema, typed, want string }{
		"a text":         {`{"type":"string"}`, ":edit\nyes\ny\n", `"yes"`},
		"a number":       {`{"type":"integer"}`, "7\n", "7"},
		"a choice":       {`{"enum":["yes","no"]}`, "yes\n", `"yes"`},
		"a list":         {`{"type":"array","items":{"type":"string"}}`, "a, b\ny\n", `["a","b"]`},
		"a whole object": {`{"type":"object","properties":{"ok":{"type":"boolean"},"why":{"type":"string"}}}`, ":json\n{\"ok\":true}\n", `{"ok":true}`},
	} {
		answer, screen, err := askSecret(t, c.schema, []string{"/card"}, []string{}, c.typed)
		require.NoError(t, err, "%s: %s", name, screen)
		require.JSONEq(t, c.want, answer, name)
		require.Equal(t, strings.Contains(c.typed, ":edit"), strings.Contains(screen, "the editor was started"), name)
	}
}

// Typing is hidden where the form does not say that the answer has no secret part.
func TestAnswersThatMayHaveSecretsAreTypedUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		schema, secret string
		hidden         []string
		typed          string
	}{
		"no schema":                {``, "/card", []string{`{"card":"4111"}`}, ""},
		"a field":                  {secretSchema, "/card", []string{":json", `{"card":"4111","ok":true}`}, ""},
		"a field in a field":       {secretSchema, "/owner/pin", []string{`{"card":"1","ok":true,"owner":{"pin":4111}}`}, ":json\n"},
		"a field of no schema":     {secretSchema, "/code", []string{`{"card":"1","ok":true,"code":4111}`}, ":json\n"},
		"a value of a list":        {`{"type":"array"}`, "/0", []string{`["4111"]`}, ""},
		"a part of a known choice": {`{"enum":[{"card":"4111"}, "no"]}`, "/card", []string{`{"card":"4111"}`}, ""},
	} {
		_, screen, err := askSecret(t, c.schema, []string{c.secret}, c.hidden, c.typed)
		require.NoError(t, err, "%s: %s", name, screen)
	}
}

func newJSON(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}
