package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity"
)

const manifests = "deploy/kubernetes"

type labels map[string]string

type metadata struct {
	Name   string `yaml:"name"`
	Labels labels `yaml:"labels"`
}

type manifestHeader struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
}

type labelSelector struct {
	MatchLabels labels `yaml:"matchLabels"`
}

type probe struct {
	Exec struct {
		Command []string `yaml:"command"`
	} `yaml:"exec"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type resources struct {
	Requests map[string]string `yaml:"requests"`
	Limits   map[string]string `yaml:"limits"`
}

type container struct {
	Name  string   `yaml:"name"`
	Image string   `yaml:"image"`
	Args  []string `yaml:"args"`
	Env   []struct {
		Name      string `yaml:"name"`
		Value     string `yaml:"value"`
		ValueFrom struct {
			SecretKeyRef struct {
				Name string `yaml:"name"`
				Key  string `yaml:"key"`
			} `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	} `yaml:"env"`
	Ports []struct {
		Name          string `yaml:"name"`
		ContainerPort int    `yaml:"containerPort"`
	} `yaml:"ports"`
	VolumeMounts []struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
	StartupProbe   *probe `yaml:"startupProbe"`
	ReadinessProbe *probe `yaml:"readinessProbe"`
	LivenessProbe  *probe `yaml:"livenessProbe"`
	Lifecycle      struct {
		PreStop struct {
			Sleep struct {
				Seconds int `yaml:"seconds"`
			} `yaml:"sleep"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
	Resources       resources `yaml:"resources"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   *bool `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
}

type podSpec struct {
	AutomountServiceAccountToken  *bool       `yaml:"automountServiceAccountToken"`
	EnableServiceLinks            *bool       `yaml:"enableServiceLinks"`
	TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
	Containers                    []container `yaml:"containers"`
	Volumes                       []struct {
		Name   string `yaml:"name"`
		Secret struct {
			SecretName string `yaml:"secretName"`
			Items      []struct {
				Key  string `yaml:"key"`
				Path string `yaml:"path"`
			} `yaml:"items"`
		} `yaml:"secret"`
	} `yaml:"volumes"`
	TopologySpreadConstraints []struct {
		MaxSkew           int           `yaml:"maxSkew"`
		TopologyKey       string        `yaml:"topologyKey"`
		WhenUnsatisfiable string        `yaml:"whenUnsatisfiable"`
		LabelSelector     labelSelector `yaml:"labelSelector"`
	} `yaml:"topologySpreadConstraints"`
	SecurityContext struct {
		RunAsNonRoot   bool              `yaml:"runAsNonRoot"`
		RunAsUser      int               `yaml:"runAsUser"`
		RunAsGroup     int               `yaml:"runAsGroup"`
		SeccompProfile map[string]string `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
}

type deployment struct {
	manifestHeader `yaml:",inline"`

	Spec struct {
		Replicas int           `yaml:"replicas"`
		Selector labelSelector `yaml:"selector"`
		Strategy struct {
			Type          string         `yaml:"type"`
			RollingUpdate map[string]int `yaml:"rollingUpdate"`
		} `yaml:"strategy"`
		Template struct {
			Metadata metadata `yaml:"metadata"`
			Spec     podSpec  `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type service struct {
	manifestHeader `yaml:",inline"`

	Spec struct {
		ClusterIP string `yaml:"clusterIP"`
		Selector  labels `yaml:"selector"`
		Ports     []struct {
			Name        string `yaml:"name"`
			Port        int    `yaml:"port"`
			TargetPort  string `yaml:"targetPort"`
			AppProtocol string `yaml:"appProtocol"`
		} `yaml:"ports"`
	} `yaml:"spec"`
}

type disruptionBudget struct {
	manifestHeader `yaml:",inline"`

	Spec struct {
		MaxUnavailable int           `yaml:"maxUnavailable"`
		Selector       labelSelector `yaml:"selector"`
	} `yaml:"spec"`
}

type networkPolicy struct {
	manifestHeader `yaml:",inline"`

	Spec struct {
		PodSelector labelSelector `yaml:"podSelector"`
		PolicyTypes []string      `yaml:"policyTypes"`
		Ingress     []struct {
			From []struct {
				NamespaceSelector labelSelector `yaml:"namespaceSelector"`
				PodSelector       labelSelector `yaml:"podSelector"`
			} `yaml:"from"`
			Ports []struct {
				Protocol string `yaml:"protocol"`
				Port     string `yaml:"port"`
			} `yaml:"ports"`
		} `yaml:"ingress"`
	} `yaml:"spec"`
}

type secret struct {
	manifestHeader `yaml:",inline"`

	Type       string            `yaml:"type"`
	StringData map[string]string `yaml:"stringData"`
}

type kustomization struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Namespace  string   `yaml:"namespace"`
	Resources  []string `yaml:"resources"`
	Images     []struct {
		Name    string `yaml:"name"`
		NewName string `yaml:"newName"`
		NewTag  string `yaml:"newTag"`
	} `yaml:"images"`
}

// cluster is everything under deploy/kubernetes.
type cluster struct {
	servers, worker             deployment
	service                     service
	budget                      disruptionBudget
	network                     networkPolicy
	secret                      secret
	namespace                   manifestHeader
	kustomizeOne, kustomizeBoth kustomization
}

func readCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	for file, into := range map[string]struct {
		apiVersion, kind string
		value            any
	}{
		"servers/deployment.yaml":        {"apps/v1", "Deployment", &c.servers},
		"servers/service.yaml":           {"v1", "Service", &c.service},
		"servers/disruption.yaml":        {"policy/v1", "PodDisruptionBudget", &c.budget},
		"servers/network.yaml":           {"networking.k8s.io/v1", "NetworkPolicy", &c.network},
		"servers/secret.example.yaml":    {"v1", "Secret", &c.secret},
		"servers/namespace.yaml":         {"v1", "Namespace", &c.namespace},
		"servers/kustomization.yaml":     {"kustomize.config.k8s.io/v1beta1", "Kustomization", &c.kustomizeOne},
		"with-worker/worker.yaml":        {"apps/v1", "Deployment", &c.worker},
		"with-worker/kustomization.yaml": {"kustomize.config.k8s.io/v1beta1", "Kustomization", &c.kustomizeBoth},
	} {
		file = filepath.Join(manifests, file)
		decodeDocuments(t, file, func(kind string) any {
			require.Equal(t, into.kind, kind, file)
			return into.value
		})
		text, err := os.ReadFile(filepath.Join(repository, file))
		require.NoError(t, err)
		var head struct {
			APIVersion string `yaml:"apiVersion"`
		}
		require.NoError(t, yaml.Unmarshal(text, &head))
		require.Equal(t, into.apiVersion, head.APIVersion, file)
	}
	return c
}

func TestManifestsNameEachOther(t *testing.T) {
	c := readCluster(t)
	pods := c.servers.Spec.Template
	for who, selector := range map[string]labels{
		"deployment": c.servers.Spec.Selector.MatchLabels, "service": c.service.Spec.Selector,
		"budget": c.budget.Spec.Selector.MatchLabels, "network policy": c.network.Spec.PodSelector.MatchLabels,
		"spread": pods.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	} {
		require.NotEmpty(t, selector, who)
		for name, value := range selector {
			require.Equal(t, value, pods.Metadata.Labels[name], "the %s does not select the pods", who)
		}
	}
	require.GreaterOrEqual(t, c.servers.Spec.Replicas, 2)
	require.Less(t, c.budget.Spec.MaxUnavailable, c.servers.Spec.Replicas)
	require.Positive(t, c.budget.Spec.MaxUnavailable, "a node could never be drained")
	require.Zero(t, c.servers.Spec.Strategy.RollingUpdate["maxUnavailable"])
	require.Positive(t, c.servers.Spec.Strategy.RollingUpdate["maxSurge"])
	require.Equal(t, "None", c.service.Spec.ClusterIP, "gRPC balances itself")

	ports := map[string]int{}
	for _, p := range pods.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range c.service.Spec.Ports {
		require.Equal(t, ports[p.TargetPort], p.Port, "headless: the port is the pod's own")
	}
	for _, rule := range c.network.Spec.Ingress {
		require.NotEmpty(t, rule.From, "every pod")
		require.Contains(t, ports, rule.Ports[0].Port)
	}
	require.Equal(t, c.kustomizeOne.Namespace, c.namespace.Metadata.Name)
	require.Equal(t, c.kustomizeOne.Namespace, c.kustomizeBoth.Namespace)
	require.Equal(t, []string{"../servers", "worker.yaml"}, c.kustomizeBoth.Resources)
	workers := c.worker.Spec.Template.Metadata.Labels
	for name, value := range c.worker.Spec.Selector.MatchLabels {
		require.Equal(t, value, workers[name], "the deployment of workers does not select its pods")
		require.NotEqual(t, value, pods.Metadata.Labels[name], "the servers would pass for workers")
	}
	for name, value := range c.network.Spec.Ingress[0].From[0].PodSelector.MatchLabels {
		require.Equal(t, value, workers[name], "the network policy keeps workers out")
	}
	files, err := filepath.Glob(filepath.Join(repository, manifests, "servers", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(c.kustomizeOne.Resources)+2, "all but itself and the example of a secret")
	for _, r := range c.kustomizeOne.Resources {
		require.FileExists(t, filepath.Join(repository, manifests, "servers", r))
	}
}

func TestServersInKubernetesAreStartedRight(t *testing.T) {
	c := readCluster(t)
	pod := c.servers.Spec.Template.Spec
	server := pod.Containers[0]
	env := map[string]string{}
	for _, e := range server.Env {
		env[e.Name] = e.Value
		if ref := e.ValueFrom.SecretKeyRef; ref.Name != "" {
			require.Equal(t, c.secret.Metadata.Name, ref.Name)
			require.Contains(t, c.secret.StringData, ref.Key)
			env[e.Name] = c.secret.StringData[ref.Key]
		}
		require.NotEmpty(t, env[e.Name], e.Name)
	}
	o := parseShippedOptions(t, server.Args, env)
	requirePort(t, "7700", o.Listen)
	requirePort(t, "9090", o.Metrics)
	require.NotContains(t, strings.Join(server.Args, " "), "store", "its password would be seen by all who may see pods")
	for _, p := range []*probe{server.StartupProbe, server.ReadinessProbe, server.LivenessProbe} {
		require.NotNil(t, p)
		require.Equal(t, []string{"/graphd", "health", "--service=reads"}, p.Exec.Command[:3], "a store that takes no changes would take all servers away")
		require.Positive(t, p.FailureThreshold)
		require.LessOrEqual(t, p.TimeoutSeconds, p.PeriodSeconds)
	}
	needs := o.DrainTimeout + time.Duration(server.Lifecycle.PreStop.Sleep.Seconds)*time.Second
	require.Positive(t, server.Lifecycle.PreStop.Sleep.Seconds)
	require.Greater(t, time.Duration(pod.TerminationGracePeriodSeconds)*time.Second, needs,
		"the server would be killed while it drains")
	require.False(t, *pod.EnableServiceLinks, "a Service that is called graphd-store would set GRAPHD_STORE_PORT and others")
	require.False(t, *server.SecurityContext.AllowPrivilegeEscalation)
	require.True(t, *server.SecurityContext.ReadOnlyRootFilesystem)
	require.True(t, pod.SecurityContext.RunAsNonRoot)

	text, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
	require.NoError(t, err)
	require.Contains(t, string(text), "USER 65532:65532")
	require.Equal(t, 65532, pod.SecurityContext.RunAsUser)
}

// exampleSecrets calls the commands of the example of a Secret, and returns the file or
// the text of each key of each Secret.
func exampleSecrets(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, manifests, "servers", "secret.example.yaml"))
	require.NoError(t, err)
	dir := t.TempDir()
	secrets := map[string]map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n#", "")) {
		command, isCommand := strings.CutPrefix(line, "#   ")
		if !isCommand {
			continue
		}
		if of, isSecret := strings.CutPrefix(command, "kubectl -n graphd create secret generic "); isSecret {
			name, keys, _ := strings.Cut(of, " ")
			secrets[name] = secretKeys(t, dir, keys)
			continue
		}
		command, into, _ := strings.Cut(command, " > ")
		args := strings.Fields(command)
		require.Equal(t, "graphd", args[0])
		for i, word := range args {
			if args[max(i-1, 0)] == "--dir" || args[max(i-1, 0)] == "--file" {
				args[i] = filepath.Join(dir, word)
			}
		}
		r := commandRunner{}.runCommand(t, args[1:]...)
		require.Equal(t, exit.CodeDone, r.code, r.err)
		if into != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, strings.TrimSpace(into)), []byte(r.out), 0o600))
		}
	}
	return secrets
}

// secretKeys returns the keys that the options of kubectl give to a Secret.
func secretKeys(t *testing.T, dir, options string) map[string]string {
	t.Helper()
	keys := map[string]string{}
	for option := range strings.SplitSeq(options, "--from-") {
		if from, isFile := strings.CutPrefix(strings.TrimSpace(option), "file="); isFile {
			key, path, isRenamed := strings.Cut(from, "=")
			if !isRenamed {
				path = key
			}
			keys[key] = filepath.Join(dir, path)
			require.FileExists(t, keys[key])
		}
		if key, file, isFile := strings.Cut(option, "=\"$(cat "); isFile {
			text, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(strings.TrimSpace(file), ")\"")))
			require.NoError(t, err)
			keys[strings.TrimPrefix(key, "literal=")] = strings.TrimSpace(string(text))
		}
	}
	return keys
}

// findMounted returns the file of a Secret that a path in the container of a pod is.
func findMounted(t *testing.T, pod podSpec, secrets map[string]map[string]string, path string) string {
	t.Helper()
	for _, m := range pod.Containers[0].VolumeMounts {
		key, isBelow := strings.CutPrefix(path, m.MountPath+"/")
		for _, v := range pod.Volumes {
			if !isBelow || v.Name != m.Name {
				continue
			}
			require.True(t, m.ReadOnly)
			require.True(t, len(v.Secret.Items) == 0 || v.Secret.Items[0].Path == key, "%s is left out", path)
			require.Contains(t, secrets[v.Secret.SecretName], key)
			return secrets[v.Secret.SecretName][key]
		}
	}
	require.Fail(t, "nothing is mounted", path)
	return ""
}

// The servers start with the Secrets that the example makes, and serve their probes,
// their workers, and no one else.
func TestServersInKubernetesAreSecure(t *testing.T) {
	c, secrets := readCluster(t), exampleSecrets(t)
	pod, workers := c.servers.Spec.Template.Spec, c.worker.Spec.Template.Spec
	env := map[string]string{"GRAPHD_STORE": c.secret.StringData["store"], "GRAPHD_WORKER_KEY": c.secret.StringData["worker-key"]}
	o := parseShippedOptions(t, pod.Containers[0].Args, env)
	require.False(t, o.Insecure)
	for _, path := range []*string{&o.TLSCert, &o.TLSKey, &o.APIKeys} {
		*path = findMounted(t, pod, secrets, *path)
	}
	o.Store, o.Metrics = "memory", ""
	call := startServerWith(t, *o)
	probe := pod.Containers[0].LivenessProbe.Exec.Command
	ca, found := strings.CutPrefix(probe[3], "--tls-ca=")
	require.True(t, found)
	r := call.runCommand(t, probe[1], probe[2], "--tls-ca", findMounted(t, pod, secrets, ca))
	require.Equal(t, exit.CodeDone, r.code, r.err)

	call.env = map[string]string{}
	for _, e := range workers.Containers[0].Env {
		switch from := e.ValueFrom.SecretKeyRef; {
		case from.Name != "":
			call.env[e.Name] = secrets[from.Name][from.Key]
		case e.Name == "GRAPHD_TLS_CA":
			call.env[e.Name] = findMounted(t, workers, secrets, e.Value)
		}
	}
	require.Len(t, call.env, 2)
	r = call.runCommand(t, "graph", "list")
	require.Equal(t, exit.CodeDone, r.code, r.err)
	delete(call.env, "GRAPHD_TOKEN")
	r = call.runCommand(t, "graph", "list")
	require.Equal(t, exit.CodeError, r.code)
	require.Contains(t, r.err, string(identity.NoCredentials))
}

func TestImagesAreTheSameEverywhere(t *testing.T) {
	c := readCluster(t)
	var compose composeFile
	decodeDocuments(t, "compose.yaml", func(string) any { return &compose })
	server := c.kustomizeOne.Images[0]
	require.Equal(t, c.servers.Spec.Template.Spec.Containers[0].Image, server.Name)
	require.Equal(t, compose.Graphd.Image, server.NewName+":"+server.NewTag)

	pod := c.worker.Spec.Template.Spec
	worker, image := pod.Containers[0], c.kustomizeBoth.Images[0]
	require.Equal(t, worker.Image, image.Name)
	require.Equal(t, compose.Services["worker"].Image, image.NewName+":"+image.NewTag)
	require.Equal(t, "GRAPHD_SERVER", worker.Env[0].Name)
	require.Equal(t, c.service.Metadata.Name+":7700", worker.Env[0].Value)
	require.Greater(t, pod.TerminationGracePeriodSeconds, 20, "the SDK lets running nodes finish for so long")
	require.False(t, *pod.EnableServiceLinks, "the Service graphd would set GRAPHD_PORT and others")
	require.True(t, pod.SecurityContext.RunAsNonRoot)
	require.False(t, *worker.SecurityContext.AllowPrivilegeEscalation)
	require.Zero(t, c.worker.Spec.Strategy.RollingUpdate["maxUnavailable"])
}
