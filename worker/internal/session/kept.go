package session

import graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"

// keptValues are the values of states that the worker has been sent on the present stream, and keeps
// for later tasks, by their digests. The server alone says what to keep and what to forget, and counts
// the bytes. Nothing changes a value: functions read its text.
type keptValues map[string]*graphdv1.Payload

// complete puts the values that the server has left out into an assignment. It returns those that are
// missing here.
func (k keptValues) complete(a *graphdv1.TaskAssignment) (missing [][]byte) {
	kept := a.GetKept()
	for channel, digest := range kept.GetKeep() {
		if value := a.GetChannels()[channel]; value != nil {
			k[string(digest)] = value
		}
	}
	for channel, digest := range kept.GetUse() {
		value := k[string(digest)]
		if value == nil {
			missing = append(missing, digest)
			continue
		}
		if a.Channels == nil {
			a.Channels = make(map[string]*graphdv1.Payload)
		}
		a.Channels[channel] = value
	}
	for _, digest := range kept.GetForget() {
		delete(k, string(digest))
	}
	return missing
}
