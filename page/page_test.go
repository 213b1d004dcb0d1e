package page_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/page"
)

func TestFilesHaveTheLicensesOfTheirCode(t *testing.T) {
	files, err := page.Files()
	require.NoError(t, err)
	text, err := fs.ReadFile(files, "assets/licenses.txt")
	require.NoError(t, err)
	for _, want := range []string{"preact ", "@dagrejs/dagre ", "Jason Miller", "Chris Pettitt", "Permission is hereby granted"} {
		require.Contains(t, string(text), want)
	}
	scripts := map[string]string{"drawing.js": page.DrawingScript}
	for _, name := range []string{"page.js", "layout.js"} {
		script, err := fs.ReadFile(files, "assets/"+name)
		require.NoError(t, err)
		scripts[name] = string(script)
	}
	for name, script := range scripts {
		require.Regexp(t, `^/\* Licenses: /assets/licenses\.txt \*/`, script, name)
	}
}
