package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/shell"
)

func TestPrintedCommandsSurviveAShell(t *testing.T) {
	args := []string{
		"plain", "", "two words", `it's`, `{"a":"$HOME \"x\" \\ ` + "`id`" + `!"}`, "a=b", "new\nline", "*", "~", "退款", "#", ";",
	}
	out, err := exec.Command("sh", "-c", `printf '%s\001' `+shell.QuoteCommand(args...)).Output()
	require.NoError(t, err)
	require.Equal(t, args, strings.Split(strings.TrimSuffix(string(out), "\001"), "\001"))
	require.Equal(t, "graphd resume t1 --value true", shell.QuoteCommand("graphd", "resume", "t1", "--value", "true"))
}

func FuzzPrintedCommands(f *testing.F) {
	f.Add("it's", `{"a": 1}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		// No argument can contain the first; the second marks the ends below.
		held := strings.NewReplacer("\x00", "", "\x01", "")
		a, b = held.Replace(a), held.Replace(b)
		out, err := exec.Command("sh", "-c", `printf '%s\001' `+shell.QuoteCommand("-", a, b)).Output()
		require.NoError(t, err)
		require.Equal(t, "-\x01"+a+"\x01"+b+"\x01", string(out))
	})
}
