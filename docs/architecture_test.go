package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every path that the page names exists, from the root or from internal/, and the page
// has every package below internal that ships.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	page := regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(read(t, "docs", "architecture.md"), "]")
	paths := regexp.MustCompile(`[\w./-]+\.(?:go|lua|sql|py|proto)\b`).FindAllString(page, -1)
	for _, m := range regexp.MustCompile("[`*](\\w+(?:/[\\w.]+)+)[`*]").FindAllStringSubmatch(page, -1) {
		paths = append(paths, m[1])
	}
	require.NotEmpty(t, paths)
	for _, path := range paths {
		require.Contains(t, path, "/", "docs/architecture.md names %s without its folder", path)
		require.True(t, pathExists(path), "docs/architecture.md names %s, which does not exist", path)
	}
	for _, folder := range listPackageFolders(t) {
		named := regexp.MustCompile("[`*](?:internal/)?" + regexp.QuoteMeta(strings.TrimPrefix(folder, "internal/")) + "[`*]")
		require.True(t, named.MatchString(page), "docs/architecture.md does not name the package %s", folder)
	}
}

// The table "Where to look" has one path in each row, and it is a file.
func TestArchitectureTableNamesOneFilePerRow(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "docs", "architecture.md"), "\n## Where to look\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile("^\\| .+ \\| `([^`]+)` \\|$")
	rows := 0
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| to change ") {
			continue
		}
		rows++
		cells := row.FindStringSubmatch(line)
		require.NotNil(t, cells, "a row has one file: %s", line)
		require.FileExists(t, filepath.Join(root, cells[1]))
	}
	require.Greater(t, rows, 30)
}

// pathExists reports whether a path exists below the root or below internal.
func pathExists(path string) bool {
	for _, top := range []string{root, filepath.Join(root, "internal")} {
		if _, err := os.Stat(filepath.Join(top, path)); err == nil {
			return true
		}
	}
	return false
}

// listPackageFolders lists the folders below internal whose code ships.
func listPackageFolders(t *testing.T) []string {
	t.Helper()
	var folders []string
	isTestSupport := regexp.MustCompile(`testkit|internal/arch|redistest`)
	require.NoError(t, fs.WalkDir(os.DirFS(root), "internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if folder := filepath.Dir(path); !isTestSupport.MatchString(folder) && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return nil
	}))
	require.NotEmpty(t, folders)
	return folders
}
