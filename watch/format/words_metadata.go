// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// metadata has words for deletions, labels, annotations and finalizers.
func (w *wording) metadata(path diff.Path, f event.Field) phrase {
	if len(path) == 0 {
		return phrase{}
	}
	below := path[1:]
	switch path[0].Name {
	case "deletionTimestamp":
		return w.deletion(f)
	case "deletionGracePeriodSeconds":
		return phrase{w.fromTo("grace", f), noise}
	case "labels":
		// Labels of a Pod that say where its Node is come with the Node.
		if len(below) == 1 && strings.HasPrefix(below[0].Name, "topology.kubernetes.io/") && w.has("spec.nodeName") {
			return phrase{w.fromTo("label "+clean(below[0].Name), f), noise}
		}
		return w.entries("label", below, f)
	case "annotations":
		return w.annotations(below, f)
	case "finalizers":
		if f.Op != event.Replace {
			return happened("finalizer "+w.value(present(f)), f.Op)
		}
		return phrase{w.fromTo("finalizer", f), named}
	}
	return phrase{}
}

// present returns the value that was added or removed.
func present(f event.Field) any {
	if f.Op == event.Remove {
		return f.From
	}
	return f.To
}

func (w *wording) deletion(f event.Field) phrase {
	grace, known := w.object.At("metadata", "deletionGracePeriodSeconds").Value.(int64)
	switch {
	case f.Op == event.Add:
		text := "deletion requested"
		if grace > 0 {
			text += fmt.Sprintf(", %d s of grace", grace)
		}
		if waits, ok := w.object.At("metadata", "finalizers").Value.([]any); ok && len(waits) > 0 {
			text += ", waits for " + w.value(waits)
		}
		return phrase{text, first}
	case !known:
		return phrase{"deletion moved", named}
	case grace == 0: // the kubelet's last write, when the containers have ended
		return phrase{"grace is over", named}
	}
	return phrase{fmt.Sprintf("grace changed to %d s", grace), named}
}

// bookkeeping are annotations that the controller of Deployments keeps for itself, beside
// the change that a reader looks for. The revision is one that kubectl rollout shows.
var bookkeeping = map[string]bool{
	"deployment.kubernetes.io/desired-replicas": true,
	"deployment.kubernetes.io/max-replicas":     true,
	"deployment.kubernetes.io/revision-history": true,
}

const revision = "deployment.kubernetes.io/revision"

func (w *wording) annotations(path diff.Path, f event.Field) phrase {
	switch all, ok := f.To.(map[string]any); {
	case len(path) == 1 && path[0].Name == revision:
		return phrase{w.fromTo("revision", f), named}
	case len(path) == 1 && bookkeeping[path[0].Name]:
		return phrase{w.fromTo("annotation "+clean(path[0].Name), f), noise}
	case len(path) == 0 && f.Op == event.Add && ok && all[revision] != nil:
		// The first revision comes with the map that it is in.
		others := slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(name string) bool { return name == revision || bookkeeping[name] })
		if len(others) == 0 {
			return phrase{"revision " + w.value(all[revision]), named}
		}
	}
	return w.entries("annotation", path, f)
}

// entries says what happened to one entry of a map, or to the map.
func (w *wording) entries(name string, path diff.Path, f event.Field) phrase {
	if len(path) > 0 {
		name += " " + clean(path[0].Name)
		if f.Hidden || f.Op == event.Replace {
			return phrase{w.fromTo(name, f), named}
		}
		return happened(name+"="+w.value(present(f)), f.Op)
	}
	m, _ := present(f).(map[string]any)
	if f.Op == event.Replace || f.Hidden || len(m) == 0 {
		return phrase{}
	}
	var each []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		each = append(each, clean(key)+"="+w.value(m[key]))
	}
	return happened(plural(len(each), name)+" "+cut(strings.Join(each, " "), w.columns), f.Op)
}
