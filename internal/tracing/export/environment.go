package export

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// An EnvironmentError refuses a variable of the environment. It does not have the value of a
// variable that may have credentials.
type EnvironmentError struct {
	Name    string
	Problem string
	Want    string
}

// Error names the variable, the problem and what is right.
func (e *EnvironmentError) Error() string { return e.Name + " " + e.Problem + ": want " + e.Want }

// Names of the variables of OpenTelemetry.
const (
	nameDisabled   = "OTEL_SDK_DISABLED"
	nameExporter   = "OTEL_TRACES_EXPORTER"
	nameSampler    = "OTEL_TRACES_SAMPLER"
	nameSamplerArg = "OTEL_TRACES_SAMPLER_ARG"
	nameQueueSize  = "OTEL_BSP_MAX_QUEUE_SIZE"
	nameBatchSize  = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
	nameCollector  = "OTEL_EXPORTER_OTLP_"
	nameTraces     = "OTEL_EXPORTER_OTLP_TRACES_"

	protocolHTTP = "http/protobuf"
	protocolGRPC = "grpc"
)

// Environment is what the variables of OpenTelemetry say about traces.
type Environment struct {
	Collector *url.URL // with the path of traces; nil = nothing is traced
	HasHeader bool     // what is sent to the collector has headers of the operator

	protocol  string
	sampler   sdktrace.Sampler
	queueSize int
	batchSize int
}

// Variable returns a variable of the exporter: that for traces, or else that for all signals.
func Variable(getenv func(string) string, name string) string {
	return cmp.Or(getenv(nameTraces+name), getenv(nameCollector+name))
}

// ReadEnvironment reads the variables. Traces are off unless OTEL_TRACES_EXPORTER is otlp, or it
// is empty and there is an endpoint. The error is an *EnvironmentError.
func ReadEnvironment(getenv func(string) string) (e Environment, err error) {
	exporter := strings.ToLower(getenv(nameExporter))
	if strings.EqualFold(getenv(nameDisabled), "true") || exporter == "none" || exporter == "" && Variable(getenv, "ENDPOINT") == "" {
		return e, nil
	}
	if exporter != "" && exporter != "otlp" {
		return e, &EnvironmentError{nameExporter, fmt.Sprintf("is %q", exporter), "otlp, or none"}
	}
	if e.protocol = cmp.Or(strings.ToLower(Variable(getenv, "PROTOCOL")), protocolHTTP); e.protocol != protocolHTTP && e.protocol != protocolGRPC {
		return e, &EnvironmentError{nameCollector + "PROTOCOL", fmt.Sprintf("is %q", e.protocol), protocolHTTP + " or " + protocolGRPC}
	}
	if e.sampler, err = readSampler(getenv); err != nil {
		return e, err
	}
	if e.queueSize, err = readSize(getenv, nameQueueSize, sdktrace.DefaultMaxQueueSize); err != nil {
		return e, err
	}
	if e.batchSize, err = readSize(getenv, nameBatchSize, min(sdktrace.DefaultMaxExportBatchSize, e.queueSize)); err != nil {
		return e, err
	}
	if e.batchSize > e.queueSize {
		return e, &EnvironmentError{nameBatchSize, fmt.Sprintf("is %d", e.batchSize), "at most " + nameQueueSize + ", " + strconv.Itoa(e.queueSize)}
	}
	e.HasHeader = Variable(getenv, "HEADERS") != ""
	e.Collector, err = readCollector(getenv, e.protocol)
	return e, err
}

// readCollector reads the address of the collector.
func readCollector(getenv func(string) string, protocol string) (*url.URL, error) {
	name, address, isOwn := nameTraces+"ENDPOINT", getenv(nameTraces+"ENDPOINT"), true
	if address == "" {
		name, address, isOwn = nameCollector+"ENDPOINT", getenv(nameCollector+"ENDPOINT"), false
	}
	if address == "" {
		address = "http://localhost:4318"
		if protocol == protocolGRPC {
			address = "http://localhost:4317"
		}
	}
	to, err := url.Parse(address)
	switch {
	case err != nil || to.Hostname() == "" || to.Scheme != "http" && to.Scheme != "https":
		return nil, &EnvironmentError{name, "is no address of a collector", "http://HOST:4318 or https://HOST:4318, or port 4317 for gRPC"}
	case to.User != nil:
		return nil, &EnvironmentError{name, "has credentials", "credentials in " + nameCollector + "HEADERS"}
	case protocol == protocolHTTP && !isOwn:
		to = to.JoinPath("v1", "traces")
	}
	return to, nil
}

// readSampler makes the sampler.
func readSampler(getenv func(string) string) (sdktrace.Sampler, error) {
	name := strings.ToLower(cmp.Or(getenv(nameSampler), "parentbased_always_on"))
	kind, isParentBased := strings.CutPrefix(name, "parentbased_")
	var sampler sdktrace.Sampler
	switch kind {
	case "always_on":
		sampler = sdktrace.AlwaysSample()
	case "always_off":
		sampler = sdktrace.NeverSample()
	case "traceidratio":
		ratio, err := readRatio(getenv)
		if err != nil {
			return nil, err
		}
		sampler = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, &EnvironmentError{nameSampler, fmt.Sprintf("is %q", name), "always_on, always_off or traceidratio, each also with parentbased_ before it"}
	}
	if isParentBased {
		sampler = sdktrace.ParentBased(sampler)
	}
	return sampler, nil
}

func readRatio(getenv func(string) string) (float64, error) {
	text := cmp.Or(getenv(nameSamplerArg), "1")
	ratio, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, &EnvironmentError{nameSamplerArg, fmt.Sprintf("is %q", text), "a number from 0 to 1"}
	}
	return ratio, nil
}

// maxQueueSize bounds the spans that may wait.
const maxQueueSize = 1 << 20

func readSize(getenv func(string) string, name string, standard int) (int, error) {
	text := getenv(name)
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxQueueSize {
		return 0, &EnvironmentError{name, fmt.Sprintf("is %q", text), "a number from 1 to " + strconv.Itoa(maxQueueSize)}
	}
	return n, nil
}
