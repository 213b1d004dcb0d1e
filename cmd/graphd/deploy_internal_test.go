package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/server"
)

// These tests read the shipped deployment files as strictly as their platforms. A
// field that these types do not have is an error in the file, or a missing field
// here.

const repository = "../.."

// decodeDocuments reads all documents of a file into values that make gives for kinds.
func decodeDocuments(t *testing.T, file string, into func(kind string) any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	require.NoError(t, err)
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var document yaml.Node
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			require.Positive(t, n, "%s is empty", file)
			return
		}
		require.NoError(t, err, file)
		var kind struct {
			Kind string `yaml:"kind"`
		}
		require.NoError(t, document.Decode(&kind), file)
		one, err := yaml.Marshal(&document)
		require.NoError(t, err)
		strict := yaml.NewDecoder(bytes.NewReader(one))
		strict.KnownFields(true)
		target := into(kind.Kind)
		require.NotNil(t, target, "%s has a %q", file, kind.Kind)
		require.NoError(t, strict.Decode(target), file)
	}
}

// parseShippedOptions reads a command line as graphd does.
func parseShippedOptions(t *testing.T, args []string, env map[string]string) *server.Options {
	t.Helper()
	require.Equal(t, "serve", args[0])
	o := &server.Options{}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.RegisterFlags(flags)
	require.NoError(t, flags.Parse(args[1:]))
	require.Empty(t, flags.Args())
	for name := range env {
		if option, ours := strings.CutPrefix(name, "GRAPHD_"); ours {
			option = strings.ReplaceAll(strings.ToLower(option), "_", "-")
			require.NotNil(t, flags.Lookup(option), "%s is no option", name)
			require.False(t, flags.Changed(option), "%s is a flag already", name)
		}
	}
	require.NoError(t, o.CompleteOptions(flags, func(name string) string { return env[name] }))
	store, err := server.ParseStore(o.Store)
	require.NoError(t, err)
	require.Equal(t, server.KindRedis, store.Kind, "several servers need a store that they can share")
	require.NotEmpty(t, o.WorkerKey, "servers that share workers need one key")
	hasCallers := o.APIKeys != "" || o.TokenIssuers != "" || o.CertificateRules != ""
	require.True(t, o.Insecure || o.TLSCert != "" && hasCallers, "it would not start")
	return o
}

func requirePort(t *testing.T, want, address string) {
	t.Helper()
	host, port, found := strings.Cut(address, ":")
	require.True(t, found, address)
	require.Equal(t, "0.0.0.0", host, "other containers would not reach it")
	require.Equal(t, want, port)
}

type composeFile struct {
	Graphd   composeService            `yaml:"x-graphd"`
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]any            `yaml:"volumes"`
}

type composeService struct {
	Image       string            `yaml:"image"`
	Build       composeBuild      `yaml:"build"`
	Entrypoint  []string          `yaml:"entrypoint"`
	Command     []string          `yaml:"command"`
	User        string            `yaml:"user"`
	Environment map[string]string `yaml:"environment"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Restart         string        `yaml:"restart"`
	StopGracePeriod time.Duration `yaml:"stop_grace_period"`
	Ports           []string      `yaml:"ports"`
	Volumes         []string      `yaml:"volumes"`
	Networks        map[string]struct {
		Aliases []string `yaml:"aliases"`
	} `yaml:"networks"`
	Deploy struct {
		Replicas int `yaml:"replicas"`
	} `yaml:"deploy"`
	Healthcheck *struct {
		Test     []string      `yaml:"test"`
		Interval time.Duration `yaml:"interval"`
		Timeout  time.Duration `yaml:"timeout"`
		Retries  int           `yaml:"retries"`
	} `yaml:"healthcheck"`
}

// composeBuild is a folder, or a folder and a Dockerfile.
type composeBuild struct{ Context, Dockerfile string }

func (b *composeBuild) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		b.Context, b.Dockerfile = node.Value, "Dockerfile"
		return nil
	}
	fields := map[string]*string{"context": &b.Context, "dockerfile": &b.Dockerfile}
	for i := 0; i < len(node.Content); i += 2 {
		field := fields[node.Content[i].Value]
		if field == nil {
			return errors.New("build: unknown field " + node.Content[i].Value)
		}
		*field = node.Content[i+1].Value
	}
	return nil
}

func TestComposeFileFits(t *testing.T) {
	var file composeFile
	decodeDocuments(t, "compose.yaml", func(string) any { return &file })
	keys, published := map[string]bool{}, map[string]bool{}
	servers := 0
	for name, s := range file.Services {
		for on, how := range s.DependsOn {
			require.Contains(t, file.Services, on, "%s depends on it", name)
			if how.Condition == "service_completed_successfully" {
				require.Equal(t, "no", file.Services[on].Restart, "%s never ends", on)
				continue
			}
			require.Equal(t, "service_healthy", how.Condition)
			image := file.Services[on].Build.Dockerfile == "Dockerfile" // has a health check of its own
			require.True(t, image || file.Services[on].Healthcheck != nil, "%s is never healthy", on)
		}
		for _, port := range s.Ports {
			host := port[:strings.LastIndex(port, ":")]
			require.True(t, strings.HasPrefix(host, "127.0.0.1:"), "%s is open to the network", port)
			require.False(t, published[host], host)
			published[host] = true
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(volume, "./") {
				require.FileExists(t, filepath.Join(repository, volume))
				continue
			}
			require.Contains(t, file.Volumes, volume)
		}
		if s.Image != file.Graphd.Image || s.Command[0] != "serve" {
			continue
		}
		servers++
		o := parseShippedOptions(t, s.Command, s.Environment)
		requirePort(t, "7700", o.Listen)
		requirePort(t, "9090", o.Metrics)
		require.Greater(t, s.StopGracePeriod, o.DrainTimeout, "%s would be killed while it drains", name)
		require.Contains(t, o.Store, "redis://redis:6379")
		require.Contains(t, s.DependsOn, "redis")
		keys[o.WorkerKey] = true
		require.Equal(t, []string{"graphd"}, s.Networks["default"].Aliases, "workers find %s by it", name)
	}
	require.Equal(t, 2, servers)
	require.Len(t, keys, 1)
	require.Equal(t, "graphd:7700", file.Services["worker"].Environment["GRAPHD_SERVER"])
	require.Greater(t, file.Services["worker"].Deploy.Replicas, 1)

	redis := strings.Join(file.Services["redis"].Command, " ")
	for _, setting := range []string{"--appendonly yes", "--appendfsync always", "--maxmemory-policy noeviction"} {
		require.Contains(t, redis, setting)
	}
	require.NotEmpty(t, file.Services["redis"].Volumes)
}

// The servers of the compose file start, with the certificates that it makes, and serve
// its operator, its workers and its health check, and no one else.
func TestComposeServersAreSecure(t *testing.T) {
	var file composeFile
	decodeDocuments(t, "compose.yaml", func(string) any { return &file })
	dir, server := t.TempDir(), file.Services["graphd-1"]
	inFolder := func(text string) string {
		for _, mounted := range []string{"/certs/", "/worker/"} {
			text = strings.ReplaceAll(text, mounted, dir+"/")
		}
		return text
	}
	arguments := func(list []string) []string {
		all := make([]string, 0, len(list))
		for _, one := range list {
			all = append(all, inFolder(one))
		}
		return all
	}
	makeAll := slices.Clone(file.Services["certs"].Command)
	require.Contains(t, makeAll, "/data")
	require.Equal(t, []string{"certs:/data"}, file.Services["certs"].Volumes, "the user of the image may write to /data only")
	makeAll[slices.Index(makeAll, "/data")] = dir
	for range 2 { // each start makes them
		r := commandRunner{}.runCommand(t, makeAll...)
		require.Equal(t, exit.CodeDone, r.code, r.err)
	}
	o := parseShippedOptions(t, server.Command, server.Environment)
	require.False(t, o.Insecure)
	require.Contains(t, server.Volumes, "./deploy/compose/callers.yaml:"+o.CertificateRules+":ro")
	o.TLSCert, o.TLSKey, o.TLSClientCA = inFolder(o.TLSCert), inFolder(o.TLSKey), inFolder(o.TLSClientCA)
	o.CertificateRules = filepath.Join(repository, "deploy", "compose", "callers.yaml")
	o.Store, o.Metrics = "memory", ""
	call := startServerWith(t, *o)

	require.Equal(t, []string{"CMD", "/graphd"}, server.Healthcheck.Test[:2])
	r := call.runCommand(t, arguments(server.Healthcheck.Test[2:])...)
	require.Equal(t, exit.CodeDone, r.code, r.err)

	worker := file.Services["worker"]
	call.env = map[string]string{}
	for name, value := range worker.Environment {
		if strings.HasPrefix(name, "GRAPHD_TLS") {
			require.Contains(t, file.Services["worker-certs"].Entrypoint, strings.Replace(value, "/worker/", "/certs/", 1), "it is not there")
			call.env[name] = inFolder(value)
		}
	}
	require.Len(t, call.env, 3)
	require.NotContains(t, strings.Join(append(file.Services["worker-certs"].Entrypoint, worker.Volumes...), " "), "ca-key")
	r = call.runCommand(t, "graph", "list")
	require.Equal(t, exit.CodeDone, r.code, r.err)

	text, err := os.ReadFile(filepath.Join(repository, "compose.yaml"))
	require.NoError(t, err)
	_, line, found := strings.Cut(string(text), "#   export ")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	for setting := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(setting, "=")
		call.env[name] = strings.Replace(value, "certs/", dir+"/", 1)
	}
	require.Len(t, strings.Fields(line), 3)
	r = call.runCommand(t, "graph", "list")
	require.Equal(t, exit.CodeDone, r.code, r.err)

	call.env["GRAPHD_TLS_CERT"], call.env["GRAPHD_TLS_KEY"] = filepath.Join(dir, "client-health.pem"), filepath.Join(dir, "client-health-key.pem")
	r = call.runCommand(t, "graph", "list")
	require.Equal(t, exit.CodeError, r.code)
	require.Contains(t, r.err, string(identity.CertificateUnmapped))
}

// Images of others are named by digest, so that what is built and started today is what
// was tested. Dependabot finds them.
func TestImagesOfOthersArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$`)
	var file composeFile
	decodeDocuments(t, "compose.yaml", func(string) any { return &file })
	renewed := readDependabot(t)
	own, others := map[string]bool{}, 0
	for name, service := range file.Services {
		if service.Build.Dockerfile == "" {
			require.Regexp(t, pinned, service.Image, name)
			others++
			continue
		}
		own[service.Build.Dockerfile] = true
	}
	require.Positive(t, others)
	require.Equal(t, []string{"/"}, renewed["docker-compose"])
	for dockerfile := range own {
		require.Contains(t, renewed["docker"], path.Dir("/"+dockerfile))
		text, err := os.ReadFile(filepath.Join(repository, dockerfile))
		require.NoError(t, err)
		bases := regexp.MustCompile(`(?m)^FROM (?:--\S+ )?(\S+)`).FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, bases, dockerfile)
		for _, base := range bases {
			require.Regexp(t, pinned, base[1], dockerfile)
		}
	}
}

// readDependabot returns which folders Dependabot looks at, by ecosystem.
func readDependabot(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, ".github", "dependabot.yml"))
	require.NoError(t, err)
	var file struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directory   string   `yaml:"directory"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	all := map[string][]string{}
	for _, u := range file.Updates {
		if u.Directory != "" {
			u.Directories = append(u.Directories, u.Directory)
		}
		all[u.Ecosystem] = append(all[u.Ecosystem], u.Directories...)
	}
	return all
}

// The image has the list of what is in it, made as the target sbom makes it.
func TestTheImageHasAnSBOM(t *testing.T) {
	const command = "go tool -modfile=tools/go.mod cyclonedx-gomod bin -json -std -short-purls -noserial -notimestamp -version"
	for _, file := range []string{"Dockerfile", "Makefile"} {
		text, err := os.ReadFile(filepath.Join(repository, file))
		require.NoError(t, err)
		require.Contains(t, string(text), command, file)
	}
	text, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
	require.NoError(t, err)
	_, final, found := strings.Cut(string(text), "\nFROM gcr.io/")
	require.True(t, found)
	require.Contains(t, final, "COPY --from=build /out/graphd.cdx.json /graphd.cdx.json\n")
}

// An image can be built: what its Dockerfile copies exists, and the ignore file
// of the build lets it pass.
func TestImagesHaveWhatTheyCopy(t *testing.T) {
	var file composeFile
	decodeDocuments(t, "compose.yaml", func(string) any { return &file })
	for _, service := range file.Services {
		if service.Build.Dockerfile == "" {
			require.Empty(t, service.Build.Context)
			continue
		}
		require.Equal(t, ".", service.Build.Context)
		ignore, err := os.ReadFile(filepath.Join(repository, service.Build.Dockerfile+".dockerignore"))
		if errors.Is(err, os.ErrNotExist) {
			ignore, err = os.ReadFile(filepath.Join(repository, ".dockerignore"))
		}
		require.NoError(t, err)
		passes := strings.Split(string(ignore), "\n")
		for _, source := range copiedPaths(t, service.Build.Dockerfile) {
			_, err := os.Stat(filepath.Join(repository, source))
			require.NoError(t, err, service.Build.Dockerfile)
			passed := source
			for passed != "." && !slices.Contains(passes, "!"+passed) {
				passed = path.Dir(passed)
			}
			require.NotEqual(t, ".", passed, "%s copies %s, which its ignore file keeps out", service.Build.Dockerfile, source)
		}
	}
}

// copiedPaths lists what a Dockerfile copies from the repository.
func copiedPaths(t *testing.T, dockerfile string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, dockerfile))
	require.NoError(t, err)
	var all []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) > 2 && words[0] == "COPY" && !strings.HasPrefix(words[1], "--") {
			all = append(all, words[1:len(words)-1]...)
		}
	}
	require.NotEmpty(t, all)
	return all
}
