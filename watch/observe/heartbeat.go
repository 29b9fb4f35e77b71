// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"slices"

	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// beats is a tree of the heartbeats of a kind: fields that show only that a component is
// alive.
type beats struct {
	fields map[string]*beats
	each   *beats // every element of a list
	beat   bool   // the field itself, with everything below it
	leader bool   // the field is a leader's record: a heartbeat while the holder is the same
}

// The heartbeats, and who writes them:
//
//   - Lease spec.renewTime: leader elections, and each kubelet every 10 s (KEP-589). A new
//     holder is content. LeaseCandidate spec.renewTime: candidates of an election.
//   - Node status.conditions[*].lastHeartbeatTime: each kubelet every 5 min, nothing else
//     being new. lastProbeTime in the conditions of any kind: reserved for the same use.
//   - Event: a repetition is counted, in count and lastTimestamp, or in series.
//   - the annotation control-plane.alpha.kubernetes.io/leader: leader elections from before
//     there were Leases, with renewTime in a JSON record.
//   - the annotation endpoints.kubernetes.io/last-change-trigger-time: for measuring how
//     late an EndpointSlice is. Alone it says nothing.
//
// Beside them there is the bookkeeping of the server in the metadata.
var (
	beat = &beats{beat: true}

	beatingMetadata = &beats{fields: map[string]*beats{
		"managedFields": beat, "resourceVersion": beat, "generation": beat,
		"annotations": {fields: map[string]*beats{
			leaderAnnotation: {leader: true},
			"endpoints.kubernetes.io/last-change-trigger-time": beat,
		}},
	}}
	beatingConditions = &beats{fields: map[string]*beats{"conditions": {each: &beats{fields: map[string]*beats{
		"lastHeartbeatTime": beat,
		"lastProbeTime":     beat,
	}}}}}

	beatsOfAny   = &beats{fields: map[string]*beats{"metadata": beatingMetadata, "status": beatingConditions}}
	beatsOfLease = &beats{fields: map[string]*beats{
		"metadata": beatingMetadata, "status": beatingConditions,
		"spec": {fields: map[string]*beats{"renewTime": beat}},
	}}
	beatsOfEvent = &beats{fields: map[string]*beats{
		"metadata": beatingMetadata,
		"count":    beat, "lastTimestamp": beat, "series": beat,
		"deprecatedCount": beat, "deprecatedLastTimestamp": beat,
	}}
)

const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// beatsOf returns the heartbeats of a kind.
func beatsOf(group, kind string) *beats {
	switch {
	case group == "coordination.k8s.io" && (kind == "Lease" || kind == "LeaseCandidate"):
		return beatsOfLease
	case kind == "Event" && (group == "" || group == "events.k8s.io"):
		return beatsOfEvent
	}
	return beatsOfAny
}

func (b *beats) field(name string) *beats {
	if b == nil {
		return nil
	}
	return b.fields[name]
}

func (b *beats) element() *beats {
	if b == nil {
		return nil
	}
	return b.each
}

// isBeat reports whether a difference is a heartbeat and nothing more.
func (b *beats) isBeat(d diff.Difference) bool {
	for _, e := range d.Path {
		switch e.Kind {
		case diff.Field:
			b = b.field(e.Name)
		case diff.Item, diff.Keyed:
			b = b.element()
		case diff.Order:
			return false
		}
		if b == nil {
			return false
		}
		if b.beat {
			return true
		}
	}
	switch {
	case b.leader:
		from, isText := d.From.(string)
		to, isTextToo := d.To.(string)
		return isText && isTextToo && holder(from) == holder(to)
	case d.Op == event.Add:
		return b.onlyBeats(d.To)
	case d.Op == event.Remove:
		return b.onlyBeats(d.From)
	}
	return false
}

// onlyBeats reports whether an object holds heartbeats and nothing else.
func (b *beats) onlyBeats(v any) bool {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return false
	}
	for name, v := range m {
		f := b.field(name)
		if f == nil || !f.beat && !f.onlyBeats(v) {
			return false
		}
	}
	return true
}

// holder returns what a leader's record says beside its times. A text that is no record is
// returned whole.
func holder(record string) string {
	var r struct {
		Holder string `json:"holderIdentity"`
	}
	if json.Unmarshal([]byte(record), &r) != nil || r.Holder == "" {
		return record
	}
	return "\x00" + r.Holder // no record that is returned whole begins so
}

// isBookkeeping reports whether a field changes with every write.
func isBookkeeping(p diff.Path) bool {
	return len(p) >= 2 && p[0].Name == "metadata" && beatingMetadata.field(p[1].Name) == beat
}

// classOf returns the class of a difference that is no bookkeeping.
func (b *beats) classOf(d diff.Difference) event.Class {
	switch {
	case b.isBeat(d):
		return event.Heartbeat
	case d.Path[0].Name == "status":
		return event.Status
	case d.Path[0].Name == "metadata" && len(d.Path) > 1:
		switch d.Path[1].Name {
		case "labels", "annotations", "finalizers", "ownerReferences":
			return event.Metadata
		}
	}
	return event.Content
}

// classes returns the classes of fields, each once, in their order. An event is a heartbeat
// only if nothing else changed. If no field changed, the version did.
func classes(fields []event.Field) []event.Class {
	have := map[event.Class]bool{}
	for _, f := range fields {
		have[f.Class] = true
	}
	if len(have) == 0 {
		return []event.Class{event.Version}
	}
	if len(have) > 1 {
		delete(have, event.Heartbeat)
	}
	return slices.DeleteFunc(event.Classes(), func(c event.Class) bool { return !have[c] })
}
