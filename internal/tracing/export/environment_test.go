package export_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/tracing/export"
)

func read(variables map[string]string) (export.Environment, error) {
	return export.ReadEnvironment(func(name string) string { return variables[name] })
}

func TestTracesAreOffUnlessTheEnvironmentSwitchesThemOn(t *testing.T) {
	for name, c := range map[string]struct {
		variables map[string]string
		collector string // "" = off
	}{
		"nothing":            {nil, ""},
		"headers alone":      {map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, ""},
		"none":               {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ""},
		"disabled":           {map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ""},
		"otlp":               {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318/v1/traces"},
		"grpc":               {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://localhost:4317"},
		"an endpoint":        {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:4318/x/"}, "https://c:4318/x/v1/traces"},
		"that of traces":     {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/traces", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://d"}, "https://c/traces"},
		"the protocol first": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL": "x"}, "http://c:4317"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := read(c.variables)
			require.NoError(t, err)
			if c.collector == "" {
				require.Nil(t, e.Collector)
				return
			}
			require.Equal(t, c.collector, e.Collector.String())
		})
	}
}

func TestVariablesThatCantBeUsedAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		variable, value, want string
	}{
		"an exporter":      {"OTEL_TRACES_EXPORTER", "zipkin", `OTEL_TRACES_EXPORTER is "zipkin": want otlp, or none`},
		"a protocol":       {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", `OTEL_EXPORTER_OTLP_PROTOCOL is "http/json": want http/protobuf or grpc`},
		"a sampler":        {"OTEL_TRACES_SAMPLER", "jaeger_remote", `OTEL_TRACES_SAMPLER is "jaeger_remote"`},
		"no ratio":         {"OTEL_TRACES_SAMPLER_ARG", "half", `OTEL_TRACES_SAMPLER_ARG is "half": want a number from 0 to 1`},
		"a ratio too high": {"OTEL_TRACES_SAMPLER_ARG", "1.5", "want a number from 0 to 1"},
		"not a number":     {"OTEL_TRACES_SAMPLER_ARG", "NaN", "want a number from 0 to 1"},
		"no queue":         {"OTEL_BSP_MAX_QUEUE_SIZE", "0", "want a number from 1 to 1048576"},
		"batches too large": {
			"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "9999",
			"OTEL_BSP_MAX_EXPORT_BATCH_SIZE is 9999: want at most OTEL_BSP_MAX_QUEUE_SIZE, 2048",
		},
		"no address":  {"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT is no address of a collector"},
		"credentials": {"OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:secret@c:4318", "want credentials in OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		t.Run(name, func(t *testing.T) {
			variables := map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}
			variables[c.variable] = c.value
			_, err := read(variables)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}
