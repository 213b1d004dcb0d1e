package agentserver

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// graphd keeps the runs of a thread as long as the thread. A run of this API that was deleted is not
// shown any more: its id stands in a label of its thread.

// deletedPrefix begins the labels with ids of deleted runs. Their number follows.
const deletedPrefix = ownPrefix + "deleted."

// Bounds of deleted runs of a thread: a label has at most maxLabelBytes.
const (
	maxDeletedLabels = 8
	deletedPerLabel  = 31
)

// readDeletedRuns returns the ids of the deleted runs that labels of a thread name.
func readDeletedRuns(labels map[string]string) map[string]bool {
	deleted := map[string]bool{}
	for key, text := range labels {
		if strings.HasPrefix(key, deletedPrefix) {
			for id := range strings.SplitSeq(text, ",") {
				deleted[dashID(id)] = true
			}
		}
	}
	return deleted
}

// addDeletedRun adds a run to the labels of a thread. It returns the label that changes.
func addDeletedRun(labels map[string]string, id string) (key string, err error) {
	for n := range maxDeletedLabels {
		key := deletedPrefix + strconv.Itoa(n)
		text, isUsed := labels[key]
		switch {
		case !isUsed:
			labels[key] = undashID(id)
			return key, nil
		case strings.Count(text, ",") < deletedPerLabel-1:
			labels[key] = text + "," + undashID(id)
			return key, nil
		}
	}
	return "", newError(http.StatusConflict, "RUN_NOT_DELETABLE",
		fmt.Sprintf("%d runs of the thread are deleted, which is as many as it may have: delete the thread", maxDeletedLabels*deletedPerLabel)).ofField("run_id")
}

// keepOwnLabels adds those labels to labels that this package has set.
func keepOwnLabels(labels, present map[string]string) {
	for key, text := range present {
		if strings.HasPrefix(key, ownPrefix) {
			labels[key] = text
		}
	}
}

// findDeletedRuns returns the ids of the deleted runs of a thread.
func findDeletedRuns(c *call, thread string) (map[string]bool, error) {
	of, err := c.threads.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: thread})
	return readDeletedRuns(of.GetMetadata()), err
}

// deletionAttempts is how often a deletion is tried on a thread that changes.
const deletionAttempts = 10

// deleteRun answers DELETE /threads/{id}/runs/{run}.
func deleteRun(c *call) error {
	of, l, err := c.pathLeg()
	if err != nil {
		return err
	}
	if l.next == 0 && !isStopped(of.GetState()) {
		return newError(http.StatusConflict, "RUN_NOT_DELETABLE", "the run is "+l.status(of)+": cancel it before").ofField("run_id")
	}
	for range deletionAttempts {
		if err = hideRun(c, of.GetThreadId(), l.ID); reasonOf(err) != "ETAG_MISMATCH" {
			break
		}
	}
	if err != nil {
		return err
	}
	return c.writeNothing()
}

// hideRun notes that a run is deleted.
func hideRun(c *call, thread, id string) error {
	present, err := c.threads.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: thread})
	if err != nil || readDeletedRuns(present.GetMetadata())[id] {
		return err
	}
	labels := maps.Clone(present.GetMetadata())
	if labels == nil {
		labels = map[string]string{}
	}
	key, err := addDeletedRun(labels, id)
	if err != nil {
		return err
	}
	_, err = c.threads.UpdateThread(c.ctx, &graphdv1.UpdateThreadRequest{
		Thread:     &graphdv1.Thread{ThreadId: thread, Etag: present.GetEtag(), Metadata: map[string]string{key: labels[key]}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"metadata." + key}},
	})
	return err
}
