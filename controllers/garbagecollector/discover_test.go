// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
)

func served(group, version, kind string, verbs ...string) client.Served {
	return client.Served{Resource: object.Resource{Group: group, Version: version, Kind: kind, Plural: kind + "s"}, Verbs: verbs}
}

func said(of map[schema.GroupKind]object.Resource) []string {
	var all []string
	for _, r := range of {
		all = append(all, fmt.Sprintf("%s/%s", r.GroupVersion(), r.Kind))
	}
	slices.Sort(all)
	return all
}

func TestKindsThatCanBeDeletedListedAndWatchedAreWatchedButForEvents(t *testing.T) {
	all := []string{"get", "list", "watch", "delete"}
	set, ok := discovery.Set{}.With([]client.Served{
		served("", "v1", "Pod", all...),
		served("", "v1", "Event", all...),
		served("events.k8s.io", "v1", "Event", all...),
		served("example.org", "v1", "Event", all...),
		served("", "v1", "ComponentStatus", "get", "list"),
		served("authorization.k8s.io", "v1", "SubjectAccessReview", "create"),
		served("metrics.k8s.io", "v1", "Pod", "get", "list"),
	}, nil)
	watched, read := set.Where(isCollected), set.Where(isRead)
	if want := []string{"example.org/v1/Event", "v1/Pod"}; !ok || !slices.Equal(said(watched), want) {
		t.Errorf("watched are %v, want %v", said(watched), want)
	}
	want := []string{"events.k8s.io/v1/Event", "example.org/v1/Event", "metrics.k8s.io/v1/Pod", "v1/ComponentStatus", "v1/Event", "v1/Pod"}
	if !slices.Equal(said(read), want) {
		t.Errorf("served are %v, want %v", said(read), want)
	}
}

func TestOwnersThatNobodyHasSeenAreAskedForLessAndLessOften(t *testing.T) {
	if got := pause(1); got != askFirst {
		t.Errorf("the first pause is %s, want %s", got, askFirst)
	}
	for times := 2; times < 300; times++ {
		if now, before := pause(times), pause(times-1); now != min(2*before, askMost) {
			t.Errorf("after %d times the pause is %s, and was %s", times, now, before)
		}
	}
}
