// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/manager"
)

// eventSources are what the Events of kube-controller-manager's controllers name as their component. kubectl describe shows it
// in the column From, and users filter by it.
// Source: k8s.io/kubernetes/pkg/controller, the calls of NewRecorder.
var eventSources = map[string]string{
	"cronjob-controller":                        "cronjob-controller",
	"daemonset-controller":                      "daemonset-controller",
	"deployment-controller":                     "deployment-controller",
	"device-taint-eviction-controller":          "device-taint-eviction-controller",
	"disruption-controller":                     "controllermanager",
	"endpoints-controller":                      "endpoint-controller",
	"endpointslice-controller":                  "endpoint-slice-controller",
	"endpointslice-mirroring-controller":        "endpoint-slice-mirroring-controller",
	"ephemeral-volume-controller":               "ephemeral_volume",
	"garbage-collector-controller":              "garbage-collector-controller",
	"horizontal-pod-autoscaler-controller":      "horizontal-pod-autoscaler",
	"job-controller":                            "job-controller",
	"node-ipam-controller":                      "cidrAllocator",
	"node-lifecycle-controller":                 "node-controller",
	"persistentvolume-attach-detach-controller": "attachdetach-controller",
	"persistentvolume-binder-controller":        "persistentvolume-controller",
	"persistentvolume-expander-controller":      "volume_expand",
	"replicaset-controller":                     "replicaset-controller",
	"replicationcontroller-controller":          "replication-controller",
	"resourceclaim-controller":                  "resource_claim",
	"selinux-warning-controller":                "selinux_warning",
	"service-cidr-controller":                   "service-cidr-controller",
	"statefulset-controller":                    "statefulset-controller",
	"taint-eviction-controller":                 "taint-eviction-controller",
}

// ownEvents are controllers of which kube-controller-manager's record no Events, and ours do.
var ownEvents = []string{
	"persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller", "podgroup-protection-controller",
	"volumeattributesclass-protection-controller", "resourcequota-controller",
}

// hears is a host that notes what recorders are made for.
type hears struct {
	controller.Host
	sources *[]string
}

func (h hears) Recorder(source string) *events.Recorder {
	*h.sources = append(*h.sources, source)
	return h.Host.Recorder(source)
}

func TestEventsNameTheComponentsThatKubeControllerManagerNames(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	cluster, recording := everything(t), map[string]bool{}
	for _, d := range Known() {
		d.Learn(cluster)
		switchOn(t, d)
		var sources []string
		if _, err := d.New(hears{mgr, &sources}); err != nil {
			t.Fatal(err)
		}
		if len(sources) == 0 || slices.Contains(ownEvents, d.Name) {
			continue
		}
		recording[d.Name] = true
		slices.Sort(sources)
		if sources = slices.Compact(sources); len(sources) != 1 || sources[0] != eventSources[d.Name] {
			t.Errorf("the Events of %s name %q, want %q", d.Name, sources, eventSources[d.Name])
		}
	}
	for name := range eventSources {
		if !recording[name] {
			t.Errorf("%s has no recorder of Events", name)
		}
	}
}
