package shell

import (
	"regexp"
	"strings"
)

// QuoteCommand quotes a command so that a POSIX shell reads the same arguments.
func QuoteCommand(args ...string) string {
	plain := regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if !plain.MatchString(arg) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
