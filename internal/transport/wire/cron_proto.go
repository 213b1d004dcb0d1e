package wire

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// maxThreadTTL keeps the time at which a thread expires within what stores write.
const maxThreadTTL = 100 * 365 * 24 * time.Hour

// firingRequestID stands for the request ids of firings where a cron is checked.
const firingRequestID = "cron"

// CronToProto converts a cron. Errors: CHECKPOINT_CORRUPT when what it starts can't be read.
func CronToProto(c *runtime.Cron) (*graphdv1.Cron, error) {
	out := &graphdv1.Cron{
		CronId: c.ID, Schedule: c.Schedule, TimeZone: c.TimeZone, ThreadTtl: DurationToProto(c.ThreadTTL), EndTime: TimeToProto(c.End), Paused: c.IsPaused,
		Metadata: c.Metadata, Source: JSONToProto(c.Source), NextTime: TimeToProto(c.Next), LastFiring: firingToProto(c.Last),
		CreatedBy: c.CreatedBy, StartedBy: c.StartedBy, CreateTime: TimeToProto(c.Created), UpdateTime: TimeToProto(c.Updated), Etag: formatEtag(c.Revision),
		Run: &graphdv1.RunSpec{Graph: tenant.ClientName(c.Graph), ThreadId: tenant.ClientName(c.Thread)},
	}
	if c.Run == "" {
		return out, nil
	}
	spec, err := parseCronRun(c)
	if err != nil {
		return nil, err
	}
	spec.Graph = tenant.ClientName(c.Graph)
	out.Run = spec
	return out, nil
}

func firingToProto(f *runtime.CronFiring) *graphdv1.CronFiring {
	if f == nil {
		return nil
	}
	return &graphdv1.CronFiring{
		Time: TimeToProto(f.Time), FireTime: TimeToProto(f.Fired), ThreadId: tenant.ClientName(f.Thread), RunId: f.Run,
		RefusalReason: f.Reason, RefusalMessage: f.Message,
	}
}

// parseCronRun reads what a cron starts.
func parseCronRun(c *runtime.Cron) (*graphdv1.RunSpec, error) {
	spec := &graphdv1.RunSpec{}
	if err := protojson.Unmarshal([]byte(c.Run), spec); err != nil {
		return nil, runtime.Errorf(runtime.ReasonCheckpointCorrupt, "the run of cron %q can't be read: a newer server may have written it", c.ID).WithCause(err)
	}
	return spec, nil
}

// CronRunParser returns what makes requests of what crons start. The errors of it are those of
// Validator.Err, and CHECKPOINT_CORRUPT.
func CronRunParser(limits payload.Limits) func(c *runtime.Cron) (runtime.StartRequest, error) {
	return func(c *runtime.Cron) (runtime.StartRequest, error) {
		spec, err := parseCronRun(c)
		if err != nil {
			return runtime.StartRequest{}, err
		}
		v := NewValidator(limits, c.Tenant)
		req := StartRequestFromProto(v, spec, firingRequestID)
		return req, v.Err()
	}
}

// convertCronRun checks what a cron starts, and returns it as it is kept.
func (v *Validator) convertCronRun(spec *graphdv1.RunSpec) payload.JSON {
	if spec.GetRunId() != "" {
		v.AddViolation("cron.run.run_id", "must be empty: each firing has a run of its own")
	}
	if spec.GetBeginAfter() != nil {
		v.AddViolation("cron.run.begin_after", "must not be set: the schedule says when a run begins")
	}
	checked := NewValidator(v.limits, v.tenant)
	StartRequestFromProto(checked, spec, firingRequestID)
	v.addNested("cron.", checked)
	text, err := protojson.Marshal(spec)
	if err != nil {
		v.AddViolation("cron.run", "can't be kept: %s", err)
	}
	return payload.JSON(text)
}

// addNested adds the violations of a part of a request, whose names prefix completes.
func (v *Validator) addNested(prefix string, part *Validator) {
	for _, violation := range part.violations {
		v.AddViolation(prefix+violation.Field, "%s", violation.Description)
	}
	if v.exceededLimit == nil {
		v.exceededLimit = part.exceededLimit
	}
	if refused := part.overridingError; refused != nil && v.overridingError == nil {
		named := refused.With("field", prefix+refused.Meta["field"])
		named.Violations = nil
		for _, violation := range refused.Violations {
			named = named.WithViolation(prefix+violation.Field, "%s", violation.Description)
		}
		v.overridingError = named
	}
}

// NewCronFromProto converts a request to make a cron. Its run must name its graph.
func NewCronFromProto(v *Validator, req *graphdv1.CreateCronRequest) runtime.CreateCronRequest {
	c := req.GetCron()
	v.RequireSet("cron.schedule", c.GetSchedule() != "")
	v.RequireSet("cron.run", c.GetRun() != nil)
	v.RequireSet("cron.run.graph", c.GetRun().GetGraph() != "")
	if c.GetCronId() != "" && c.GetCronId() != req.GetCronId() {
		v.AddViolation("cron.cron_id", "differs from cron_id; set cron_id alone")
	}
	if isOutputSet(c) {
		v.AddViolation("cron", "has a time, a firing, a principal or an etag, which the server sets; leave them unset")
	}
	made := runtime.Cron{
		Tenant: v.Tenant(), ID: v.CheckOptionalID("cron_id", req.GetCronId()), Schedule: c.GetSchedule(), TimeZone: v.CheckText("cron.time_zone", c.GetTimeZone()),
		Graph: v.CheckGraphName("cron.run.graph", c.GetRun().GetGraph()), Thread: v.CheckOptionalThread("cron.run.thread_id", c.GetRun().GetThreadId()),
		Run: v.convertCronRun(c.GetRun()), Source: v.ConvertPayload("cron.source", c.GetSource()), ThreadTTL: v.convertThreadTTL(c), IsPaused: c.GetPaused(),
		Metadata: v.checkCronLabels(c.GetMetadata()),
	}
	if c.GetEndTime() != nil {
		made.End = v.convertTime("cron.end_time", c.GetEndTime())
	}
	if made.Thread != "" && made.ThreadTTL > 0 {
		v.AddViolation("cron.thread_ttl", "is for crons whose firings make threads: leave it unset")
	}
	return runtime.CreateCronRequest{Cron: made, RequestID: v.CheckOptionalID("request_id", req.GetRequestId())}
}

func isOutputSet(c *graphdv1.Cron) bool {
	return c.GetNextTime() != nil || c.GetLastFiring() != nil || c.GetCreatedBy() != "" || c.GetStartedBy() != "" || c.GetCreateTime() != nil ||
		c.GetUpdateTime() != nil || c.GetEtag() != ""
}

func (v *Validator) convertThreadTTL(c *graphdv1.Cron) time.Duration {
	ttl := v.convertPositiveDuration("cron.thread_ttl", c.GetThreadTtl())
	if ttl > maxThreadTTL {
		v.AddViolation("cron.thread_ttl", "is %s; want at most %s, or leave it unset for good", ttl, maxThreadTTL)
	}
	return ttl
}

// checkCronLabels checks labels. Keys that begin with NUL are those of the server.
func (v *Validator) checkCronLabels(labels map[string]string) map[string]string {
	for key := range labels {
		if strings.HasPrefix(key, "\x00") {
			v.AddViolation("cron.metadata", "has a key that begins with NUL, which the server keeps for itself")
		}
	}
	return v.CheckLabels("cron.metadata", labels)
}

// Paths of an update mask for crons, beside metadata.
const (
	maskSchedule  = "schedule"
	maskTimeZone  = "time_zone"
	maskRun       = "run"
	maskThreadTTL = "thread_ttl"
	maskEndTime   = "end_time"
	maskPaused    = "paused"
	maskSource    = "source"
)

const cronMaskPaths = "schedule, time_zone, run, thread_ttl, end_time, paused, source, metadata, metadata.KEY"

// CronChangeFromProto converts a change of a cron. It ignores fields that the mask does not name, so
// that a client may send back a cron that it read.
func CronChangeFromProto(v *Validator, req *graphdv1.UpdateCronRequest) runtime.UpdateCronRequest {
	c := req.GetCron()
	change := runtime.UpdateCronRequest{Tenant: v.Tenant(), ID: v.CheckID("cron.cron_id", c.GetCronId()), Etag: v.ParseEtag("cron.etag", c.GetEtag())}
	paths := cronMask(req)
	if len(paths) == 0 {
		v.AddViolation("update_mask", "is empty and cron sets nothing that can be changed: %s", cronMaskPaths)
	}
	labels := v.checkCronLabels(c.GetMetadata())
	for _, path := range paths {
		key, isLabel := strings.CutPrefix(path, maskMetadata+".")
		switch {
		case path == maskMetadata:
			change.Metadata, change.ReplaceMetadata = labels, true
		case isLabel && key != "":
			setCronLabel(&change, key, labels)
		default:
			v.convertCronField(&change, path, c)
		}
	}
	return change
}

// convertCronField converts one field of a change.
func (v *Validator) convertCronField(change *runtime.UpdateCronRequest, path string, c *graphdv1.Cron) {
	switch path {
	case maskSchedule:
		change.Schedule = new(c.GetSchedule())
	case maskTimeZone:
		change.TimeZone = new(v.CheckText("cron.time_zone", c.GetTimeZone()))
	case maskRun:
		v.RequireSet("cron.run", c.GetRun() != nil)
		change.Run = &runtime.CronRunChange{
			Graph: v.CheckGraphName("cron.run.graph", c.GetRun().GetGraph()), Thread: v.CheckOptionalThread("cron.run.thread_id", c.GetRun().GetThreadId()),
			Run: v.convertCronRun(c.GetRun()),
		}
	case maskThreadTTL:
		change.ThreadTTL = new(v.convertThreadTTL(c))
	case maskEndTime:
		var end time.Time
		if c.GetEndTime() != nil {
			end = v.convertTime("cron.end_time", c.GetEndTime())
		}
		change.End = &end
	case maskPaused:
		change.IsPaused = new(c.GetPaused())
	case maskSource:
		change.Source = new(v.ConvertPayload("cron.source", c.GetSource()))
	default:
		v.AddViolation("update_mask", "%q is not among %s", reason.ClipText(path, MaxNameLength), cronMaskPaths)
	}
}

// setCronLabel sets a label, or removes it when the cron in the request lacks it.
func setCronLabel(change *runtime.UpdateCronRequest, key string, labels map[string]string) {
	value, isSet := labels[key]
	if !isSet {
		change.DropKeys = append(change.DropKeys, key)
		return
	}
	if change.Metadata == nil {
		change.Metadata = make(map[string]string)
	}
	change.Metadata[key] = value
}

// cronMask returns the mask; without a mask, the fields that are set.
func cronMask(req *graphdv1.UpdateCronRequest) []string {
	if paths := req.GetUpdateMask().GetPaths(); len(paths) > 0 {
		return paths
	}
	c := req.GetCron()
	var paths []string
	for _, field := range []struct {
		path  string
		isSet bool
	}{
		{maskSchedule, c.GetSchedule() != ""},
		{maskTimeZone, c.GetTimeZone() != ""},
		{maskRun, c.GetRun() != nil},
		{maskThreadTTL, c.GetThreadTtl() != nil},
		{maskEndTime, c.GetEndTime() != nil},
		{maskPaused, c.GetPaused()},
		{maskSource, c.GetSource() != nil},
		{maskMetadata, len(c.GetMetadata()) > 0},
	} {
		if field.isSet {
			paths = append(paths, field.path)
		}
	}
	return paths
}

// ChangesCronRun reports whether a change of a cron replaces what the cron starts.
func ChangesCronRun(req *graphdv1.UpdateCronRequest) bool {
	return slices.Contains(cronMask(req), maskRun)
}

// NameCronGraph returns a request whose run names the graph of its thread.
func NameCronGraph(req *graphdv1.CreateCronRequest, graph string) *graphdv1.CreateCronRequest {
	named, isRequest := proto.Clone(req).(*graphdv1.CreateCronRequest)
	if !isRequest || named.GetCron().GetRun() == nil {
		return req
	}
	named.Cron.Run.Graph = graph
	return named
}
