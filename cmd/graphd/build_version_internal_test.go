package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVersionSaysWhatWasBuilt reads the information that the Go tool records for
// builds of all kinds.
func TestVersionSaysWhatWasBuilt(t *testing.T) {
	const hash = "3f988d6abcdef0123456789abcdef0123456789a"
	for name, c := range map[string]struct {
		linked, module, revision, modified string
		want                               string
	}{
		"make build":               {linked: "v1.2.3", module: "v9.9.9", revision: hash, want: "v1.2.3"},
		"go install":               {module: "v1.2.3", want: "v1.2.3"},
		"go install of a commit":   {module: "v0.0.0-20261122185003-3f988d6abcde", want: "v0.0.0-20261122185003-3f988d6abcde"},
		"go build of a commit":     {module: "v0.0.0-20261122185003-3f988d6abcde", revision: hash, modified: "false", want: "3f988d6abcde"},
		"go build after a release": {module: "v1.2.4-0.20261122185003-3f988d6abcde", revision: hash, want: "3f988d6abcde"},
		"go build with changes":    {module: "v0.0.0-20261122185003-3f988d6abcde+dirty", revision: hash, modified: "true", want: "3f988d6abcde-dirty"},
		"go build of a tag":        {module: "v1.2.3", revision: hash, modified: "false", want: "v1.2.3"},
		"a changed tag":            {module: "v1.2.3+dirty", revision: hash, modified: "true", want: "v1.2.3-dirty"},
		"an older Go":              {module: "(devel)", revision: hash, modified: "true", want: "3f988d6abcde-dirty"},
		"without a checkout":       {module: "(devel)", want: "dev"},
		"nothing":                  {want: "dev"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.module}}
		for key, value := range map[string]string{"vcs.revision": c.revision, "vcs.modified": c.modified} {
			if value != "" {
				info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
			}
		}
		require.Equal(t, c.want, buildVersion(c.linked, func() (*debug.BuildInfo, bool) { return info, true }), name)
	}
	require.Equal(t, "dev", buildVersion("", func() (*debug.BuildInfo, bool) { return nil, false }))
}
