package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli/output"
)

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			format, err := output.ParseFormat(p.outputFormat)
			if err != nil {
				return err
			}
			if format == output.Text {
				return output.WriteLine(p.Out, "graphd %s (%s, %s/%s)", p.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			}
			return output.WriteValue(p.Out, output.JSONL, map[string]string{
				"version": p.version, "go": runtime.Version(), "commit": commitHash(),
				"platform": runtime.GOOS + "/" + runtime.GOARCH,
			})
		},
	}
}

// commitHash returns the commit that the Go tool recorded, "" if there is none.
func commitHash() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return buildSetting(info, "vcs.revision")
}
