package chaos_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// workerKind is a worker in one language. All of them do what worker.py does.
type workerKind struct {
	language    string
	command     []string
	environment []string
	bringsGraph bool // with a reducer that only its workers have
}

// pythonWorker brings the graph along, or has the functions of one that the server has.
func pythonWorker(tb testing.TB, partOf string) workerKind {
	tb.Helper()
	return workerKind{
		language: "python", command: []string{process.Python(tb), "worker.py"}, environment: []string{"CHAOS_PART_OF=" + partOf},
		bringsGraph: partOf == "",
	}
}

func typescriptWorker(tb testing.TB) workerKind {
	tb.Helper()
	return workerKind{
		language: "typescript", command: []string{"node", "worker.mjs"}, environment: []string{"CHAOS_SDK=" + process.TypeScript(tb)},
	}
}

func goWorker(tb testing.TB) workerKind {
	tb.Helper()
	binary := filepath.Join(tb.TempDir(), "goworker")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "./goworker")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(tb, err, string(out))
	return workerKind{language: "go", command: []string{binary}}
}
