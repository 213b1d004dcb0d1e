package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every file and folder that the page names exists, and the page has every package
// below internal that ships.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	page := read(t, "docs", "architecture.md")
	folders, files := listSources(t)
	for _, name := range regexp.MustCompile(`\b[a-z_]+\.go\b`).FindAllString(page, -1) {
		require.Contains(t, files, name, "docs/architecture.md names a file that there is not")
	}
	for _, path := range regexp.MustCompile("`((?:internal|cmd)/[a-z/_]+)(?:/[a-z_]+\\.go)?`").FindAllStringSubmatch(page, -1) {
		require.DirExists(t, filepath.Join(root, path[1]))
	}
	for _, folder := range folders {
		named := regexp.MustCompile("[`*/]" + regexp.QuoteMeta(filepath.Base(folder)) + "[`*]")
		require.True(t, named.MatchString(page), "docs/architecture.md does not say what %s is for", folder)
	}
}

// listSources returns the folders below internal whose code ships, and the names of all files.
func listSources(t *testing.T) (folders []string, files map[string]bool) {
	t.Helper()
	files = make(map[string]bool)
	isTestSupport := regexp.MustCompile(`testkit|internal/arch|redistest`)
	for _, top := range []string{"internal", "cmd"} {
		require.NoError(t, fs.WalkDir(os.DirFS(root), top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files[d.Name()] = true
			if folder := filepath.Dir(path); !isTestSupport.MatchString(folder) && top == "internal" {
				folders = append(folders, folder)
			}
			return nil
		}))
	}
	return folders, files
}
