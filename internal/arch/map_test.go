package arch_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mapHeading is the heading of CONTRIBUTING.md above the map of the folders. Each
// line has folders and their contents, indented by two spaces below the folder
// around them.
const mapHeading = "## The layers"

func TestEveryLayerHasPackages(t *testing.T) {
	require.NoError(t, checkLayerFolders(packageFolders(t)))
}

func TestTheMapShowsTheFolders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	folders, err := parseFolderMap(string(text), func(folder string) bool {
		info, err := os.Stat(filepath.Join(root, filepath.FromSlash(folder)))
		return err == nil && info.IsDir()
	})
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	require.NoError(t, checkMappedFolders(folders, packageFolders(t)))
}

// packageFolders lists the folders of all packages, below the module.
func packageFolders(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, p := range listPackages(t) {
		if folder, ok := relativePath(p.ImportPath); ok && folder != "" {
			all = append(all, folder)
		}
	}
	return all
}

func checkLayerFolders(packages []string) error {
	var all []error
	for _, l := range layers {
		if l.path != "" && !slices.ContainsFunc(packages, func(folder string) bool { return isWithin(folder, l.path) }) {
			all = append(all, fmt.Errorf("internal/arch/layers_test.go: layer %q has no package: remove its line, and its name from the others", l.path))
		}
	}
	return errors.Join(all...)
}

// mappedFolder is a folder that the map shows.
type mappedFolder struct {
	path   string
	line   int // in the file
	indent int
}

// parseFolderMap reads the map. It returns an error for a line with a folder that
// does not exist.
func parseFolderMap(text string, exists func(folder string) bool) ([]mappedFolder, error) {
	before, rest, found := strings.Cut(text, mapHeading+"\n\n```\n")
	drawn, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		return nil, fmt.Errorf("CONTRIBUTING.md: there is no map in ``` below %q", mapHeading)
	}
	first := strings.Count(before, "\n") + 4
	var all []mappedFolder
	var missing []error
	for i, text := range strings.Split(drawn, "\n") {
		indent := len(text) - len(strings.TrimLeft(text, " "))
		line := slices.Clone(all)
		for _, name := range leadingFolders(text) {
			folder, ok := findMapped(all, name, indent, exists)
			if !ok {
				missing = append(missing, fmt.Errorf("CONTRIBUTING.md:%d: there is no folder %s: remove it from the map, or give it the right indentation", first+i, name))
				continue
			}
			line = append(line, mappedFolder{folder, first + i, indent})
		}
		all = line
	}
	return all, errors.Join(missing...)
}

// leadingFolders lists the names of folders that a line begins with.
func leadingFolders(line string) []string {
	var all []string
	for word := range strings.FieldsSeq(line) {
		if !strings.HasSuffix(word, "/") {
			break
		}
		all = append(all, strings.TrimSuffix(word, "/"))
	}
	return all
}

// findMapped finds the folder of a name, in one of the folders around it, the
// innermost first.
func findMapped(above []mappedFolder, name string, indent int, exists func(string) bool) (string, bool) {
	for _, parent := range slices.Backward(above) {
		if parent.indent >= indent {
			continue
		}
		if folder := path.Join(parent.path, name); exists(folder) {
			return folder, true
		}
		if parent.indent == 0 {
			return "", false
		}
	}
	return name, indent == 0 && exists(name)
}

// checkMappedFolders finds packages that are not on the map. Below internal/ each
// needs a line; elsewhere the line of a folder above is enough.
func checkMappedFolders(mapped []mappedFolder, packages []string) error {
	var all []error
	for _, folder := range packages {
		shown := slices.ContainsFunc(mapped, func(m mappedFolder) bool {
			return m.path == folder || isWithin(folder, m.path) && !isWithin(folder, "internal")
		})
		if !shown {
			all = append(all, fmt.Errorf("CONTRIBUTING.md: %s is not in the map: %s", folder, suggestLine(mapped, folder)))
		}
	}
	return errors.Join(all...)
}

// suggestLine returns the missing line of the map and its place.
func suggestLine(mapped []mappedFolder, folder string) string {
	var parent mappedFolder
	for _, m := range mapped {
		if isWithin(folder, m.path) && len(m.path) > len(parent.path) {
			parent = m
		}
	}
	if parent.path == "" {
		return fmt.Sprintf("add the line \"%s/  WHAT IT IS\"", folder)
	}
	name := strings.TrimPrefix(folder, parent.path+"/")
	return fmt.Sprintf("add the line \"%s%s/  WHAT IT IS\" below line %d, %s/",
		strings.Repeat(" ", parent.indent+2), name, parent.line, parent.path)
}
