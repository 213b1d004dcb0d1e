package engine_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

var rewriteScenarios = flag.Bool("rewrite", false, "write what the scenarios answer into their files, for review")

// TestScenarios plays the files in testdata: what a reader sees there is what the
// runtime does. Each file is a fixture of its own with a clock of its own, so that
// a node that sleeps an hour costs nothing. It is played on every store that needs
// no server, and with expressions for all that only computes: their supersteps
// share commits, and nothing of that is to be seen. After a change that is meant,
// run with -rewrite and review the difference.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			blocks := splitBlocks(string(text))
			if *rewriteScenarios {
				answers := runBlocks(t, openMemory, false, blocks)
				require.NoError(t, os.WriteFile(file, []byte(joinBlocks(blocks, answers)), 0o600))
				return
			}
			for name, open := range map[string]openFunc{"memory": openMemory, "sqlite": openSQLite, "expressions": openMemory, "sqlite, expressions": openSQLite} {
				t.Run(name, func(t *testing.T) {
					answers := runBlocks(t, open, strings.HasSuffix(name, "expressions"), blocks)
					for i, b := range blocks {
						require.Equal(t, b.want, answers[i], "%s:%d: %s", file, b.line, b.command)
					}
				})
			}
		})
	}
}

type openFunc func(t *testing.T) checkpoint.Store

func openMemory(*testing.T) checkpoint.Store { return memory.New(memory.Options{}) }

func openSQLite(t *testing.T) checkpoint.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "graphd.db")})
	require.NoError(t, err)
	return s
}

// commandBlock is one command of a scenario: a line, more lines that belong to it,
// and, behind a rule, the answer up to an empty line.
type commandBlock struct {
	prose   string // comments and empty lines before it
	line    int
	command string
	body    []string
	want    string
}

const answerRule = "----"

func splitBlocks(text string) []commandBlock {
	var blocks []commandBlock
	lines := strings.Split(text, "\n")
	prose := ""
	for i := 0; i < len(lines); i++ {
		if l := lines[i]; l == "" || strings.HasPrefix(l, "#") {
			prose += l + "\n"
			continue
		}
		b := commandBlock{prose: prose, line: i + 1, command: lines[i]}
		prose = ""
		for i++; i < len(lines) && lines[i] != answerRule && lines[i] != ""; i++ {
			b.body = append(b.body, lines[i])
		}
		if i < len(lines) && lines[i] == answerRule {
			for i++; i < len(lines) && lines[i] != ""; i++ {
				b.want += lines[i] + "\n"
			}
		}
		blocks = append(blocks, b)
		prose += "\n"
	}
	return blocks
}

func joinBlocks(blocks []commandBlock, answers []string) string {
	var s strings.Builder
	for i, b := range blocks {
		s.WriteString(b.prose + b.command + "\n")
		for _, l := range b.body {
			s.WriteString(l + "\n")
		}
		if answers[i] != "" {
			s.WriteString(answerRule + "\n" + answers[i])
		}
	}
	return s.String()
}

// runBlocks runs the commands of a file in one fixture and returns their answers.
func runBlocks(t *testing.T, open openFunc, expressive bool, blocks []commandBlock) []string {
	t.Helper()
	answers := make([]string, len(blocks))
	synctest.Test(t, func(t *testing.T) {
		store := open(t)
		s := newScenarioRunner(t, store)
		s.usesExpressions = expressive
		defer func() {
			s.engine.Close()
			require.NoError(t, store.Close())
		}()
		for i, b := range blocks {
			// A run that has stopped may still hold its thread for a moment; a
			// command that comes so soon waits for it, and that shows.
			synctest.Wait()
			answers[i] = s.runCommand(b)
			synctest.Wait()
			for thread := range s.shownUpTo {
				requireRecentView(t, s.engine, store, thread)
			}
		}
	})
	return answers
}

// splitWords splits a line at blanks that are not inside quotes or brackets.
func splitWords(line string) []string {
	var out []string
	depth, quoted, from := 0, false, -1
	for i := range len(line) {
		c := line[i]
		switch {
		case quoted:
			quoted = c != '"' || line[i-1] == '\\'
		case c == '"':
			quoted = true
		case strings.IndexByte("{[(", c) >= 0:
			depth++
		case strings.IndexByte("}])", c) >= 0:
			depth--
		}
		blank := c == ' ' && depth == 0 && !quoted
		if blank && from >= 0 {
			out, from = append(out, line[from:i]), -1
		} else if !blank && from < 0 {
			from = i
		}
	}
	if from >= 0 {
		out = append(out, line[from:])
	}
	return out
}
