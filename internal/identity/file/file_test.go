package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// zoo is a document of tests.
type zoo struct {
	Animals []animal      `yaml:"animals"`
	Opens   time.Duration `yaml:"opens"`
}

type animal struct {
	Name string `yaml:"name"`
	Legs int    `yaml:"legs"`
}

func (z *zoo) Problems() []file.Problem {
	var all []file.Problem
	for i, a := range z.Animals {
		if a.Legs < 0 {
			all = append(all, file.PrefixProblems([]file.Problem{{Path: []any{"legs"}, Is: "is negative", Want: "0 or more"}}, "animals", i)...)
		}
		if a.Name == "" {
			all = append(all, file.Problem{Path: []any{"animals", i, "name"}, Is: "is missing", Want: "a name"})
		}
	}
	return all
}

func TestDecodeNamesTheLine(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string // "" = no error
	}{
		"empty":              {"", nil},
		"only a comment":     {"# nothing\n", nil},
		"good":               {"animals:\n- name: dog\n  legs: 4\nopens: 9h\n", nil},
		"unknown field":      {"animals:\n- name: dog\n  wings: 2\n", []string{"zoo.yaml:3: wings is an unknown field: want one of name, legs"}},
		"unknown at the top": {"birds: 2\n", []string{"zoo.yaml:1: birds is an unknown field: want one of animals, opens"}},
		"field given twice": {
			"animals:\n- name: dog\n  name: cat\n", []string{`zoo.yaml:3: mapping key "name" already defined at line 2`},
		},
		"wrong types": {
			"animals:\n- name: dog\n  legs: secret-value\nopens: soon\n",
			[]string{"zoo.yaml:3: animals[0].legs has the wrong type: want a whole number", "zoo.yaml:4: opens has the wrong type: want a duration like 30s"},
		},
		"a text for a list":  {"animals: dog\n", []string{"zoo.yaml:1: animals has the wrong type: want a list"}},
		"a text for a value": {"animals:\n- dog\n", []string{"zoo.yaml:2: animals[0] has the wrong type: want a mapping"}},
		"two of a kind in a line": {
			"animals: [{legs: none}, {legs: none}]\n", []string{"zoo.yaml:1: a value has the wrong type: want a whole number"},
		},
		"no YAML":         {"animals: [\n", []string{"zoo.yaml:"}},
		"second document": {"opens: 9h\n---\nopens: 8h\n", []string{"zoo.yaml:2: a second document begins: want one document"}},
		"problems": {
			"# a\nanimals:\n- name: dog\n  legs: -1\n- legs: 2\n",
			[]string{"zoo.yaml:4: animals[0].legs is negative: want 0 or more", "zoo.yaml:5: animals[1].name is missing: want a name"},
		},
		"too large": {strings.Repeat("#", file.MaxBytes+1), []string{"zoo.yaml: has 16777217 bytes: want at most 16777216"}},
		"alias":     {"animals:\n- &dog {name: dog, legs: -1}\n- *dog\n", []string{"zoo.yaml:2: animals[0].legs", "zoo.yaml:2: animals[1].legs"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := file.Decode("zoo.yaml", []byte(c.text), &zoo{})
			if c.want == nil {
				require.NoError(t, err)
			}
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
				_, ok := errors.AsType[*file.Error](err)
				require.True(t, ok)
				require.NotContains(t, err.Error(), "secret")
			}
		})
	}
}

func TestEncodeIsDecoded(t *testing.T) {
	before := zoo{Animals: []animal{{"dog", 4}, {"ant", 6}}, Opens: time.Hour}
	text, err := file.Encode(&before)
	require.NoError(t, err)
	var after zoo
	require.NoError(t, file.Decode("zoo.yaml", text, &after))
	require.Equal(t, before, after)
}

func parseNumber(text []byte) (int, error) { return strconv.Atoi(string(text)) }

func TestFilesAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "number")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("1")
	var reports []error
	f, err := file.Load(path, parseNumber, func(err error) { reports = append(reports, err) })
	require.NoError(t, err)
	changes := 0
	f.ReportChanges(func() { changes++ })
	for _, step := range []struct {
		name    string
		change  func()
		value   int
		reports int
		changes int
	}{
		{"as loaded", func() {}, 1, 0, 0},
		{"changed", func() { write("2") }, 2, 0, 1},
		{"broken", func() { write("x") }, 2, 1, 1},
		{"still broken", func() {}, 2, 1, 1},
		{"broken in another way", func() { write("y") }, 2, 2, 1},
		{"repaired", func() { write("3") }, 3, 2, 2},
		{"removed", func() { require.NoError(t, os.Remove(path)) }, 3, 3, 2},
		{"still removed", func() {}, 3, 3, 2},
		{"written again", func() { write("3") }, 3, 3, 3},
		{"too large", func() { write(strings.Repeat("4", file.MaxBytes+1)) }, 3, 4, 3},
	} {
		step.change()
		f.CheckFile()
		require.Equal(t, step.value, f.Value(), step.name)
		require.Len(t, reports, step.reports, step.name)
		require.Equal(t, step.changes, changes, step.name)
	}

	_, err = file.Load(filepath.Join(t.TempDir(), "none"), parseNumber, nil)
	wrong, ok := errors.AsType[*file.Error](err)
	require.True(t, ok)
	require.Equal(t, "can't be read: no such file or directory", wrong.Is)
	_, err = file.Load(t.TempDir(), parseNumber, nil)
	wrong, ok = errors.AsType[*file.Error](err)
	require.True(t, ok)
	require.Equal(t, "is no regular file", wrong.Is)
	write("x")
	_, err = file.Load(path, parseNumber, nil)
	require.Error(t, err)
}

func TestWatchChecksAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "number")
		require.NoError(t, os.WriteFile(path, []byte("1"), 0o600))
		f, err := file.Load(path, parseNumber, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go f.WatchFile(ctx, time.Minute)
		require.NoError(t, os.WriteFile(path, []byte("2"), 0o600))
		synctest.Wait()
		require.Equal(t, 1, f.Value())
		require.NoError(t, backoff.Sleep(t.Context(), time.Minute))
		synctest.Wait()
		require.Equal(t, 2, f.Value())
		cancel()
	})
}

func TestEditsFollowEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "number")
	const edits = 50
	var all sync.WaitGroup
	for range edits {
		all.Go(func() {
			err := file.Edit(t.Context(), path, func(text []byte) ([]byte, error) {
				n, _ := strconv.Atoi(string(text))
				return []byte(strconv.Itoa(n + 1)), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(edits), string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	requireNames(t, filepath.Dir(path), "number", "number.lock")
}

func TestEditsThatFailChangeNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "number")
	require.NoError(t, os.WriteFile(path, []byte("1"), 0o644))
	failure := errors.New("no")
	require.ErrorIs(t, file.Edit(t.Context(), path, func([]byte) ([]byte, error) { return nil, failure }), failure)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "1", string(text))
	requireNames(t, dir, "number", "number.lock")

	require.Error(t, file.Edit(t.Context(), filepath.Join(dir, "none", "number"), nil))
}

func TestEditWaitsUntilItsContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "number")
	stop := errors.New("the command was stopped")
	err := file.Edit(t.Context(), path, func([]byte) ([]byte, error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stop)
		require.ErrorIs(t, file.Edit(ctx, path, func([]byte) ([]byte, error) { return []byte("2"), nil }), stop)
		return []byte("1"), nil
	})
	require.NoError(t, err)
}

func TestEditsKeepLinks(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "number"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(path, []byte("1"), 0o600))
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, file.Edit(t.Context(), link, func([]byte) ([]byte, error) { return []byte("2"), nil }))
	target, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, path, target)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "2", string(text))
}

func requireNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, want, names)
}
