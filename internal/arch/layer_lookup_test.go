package arch_test

import "strings"

func concatLists(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// layerOf finds the innermost layer that contains a package.
func layerOf(importPath string) (layer, bool) {
	rel, ok := relativePath(importPath)
	if !ok {
		return layer{}, false
	}
	var best layer
	found := false
	for _, r := range layers {
		if isWithin(rel, r.path) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

// relativePath returns the path of a package below the module, and false for other
// packages.
func relativePath(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func isWithin(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
}
