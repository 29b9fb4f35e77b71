// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// scene is a namespace in which controllers work, with gates, beside one API server.
type scene struct {
	t         *testing.T
	cluster   *controlplanetest.Cluster
	namespace string
	pods      cache.SharedInformer[*corev1.Pod] // that the controllers read
}

func newScene(t *testing.T, gates map[string]bool, names ...string) *scene {
	t.Helper()
	s := &scene{t: t, cluster: shared.Get(t)}
	s.namespace = s.cluster.Namespace(t)
	mgr, err := manager.New(s.cluster.Config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	s.pods = cache.Informer[*corev1.Pod](mgr)
	chosen, err := Select(Known(), names)
	if err != nil {
		t.Fatal(err)
	}
	obeyed := 0
	for _, d := range chosen {
		d.Learn(controllers.Cluster{OneServer: true})
		for _, g := range d.Gates {
			if on, given := gates[g.Name]; given {
				g.Set(on)
				obeyed++
			}
		}
		c, err := d.New(mgr)
		if err != nil {
			t.Fatal(err)
		}
		if err := mgr.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if obeyed < len(gates) {
		t.Fatalf("nobody obeys one of %v", gates)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// kubectl works in the namespace, with words of one line.
func (s *scene) kubectl(line string) string {
	s.t.Helper()
	out, err := s.cluster.Kubectl(append(strings.Fields(line), "-n", s.namespace)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// await waits until what kubectl says is as wanted.
func (s *scene) await(what, line string, holds func(string) bool) {
	s.t.Helper()
	said := ""
	for end := time.Now().Add(controlplanetest.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if said = s.kubectl(line); holds(said) {
			return
		}
	}
	s.t.Fatalf("waited in vain until %s; it is %q", what, said)
}

// both runs a test with an option that is off, and with one that is on.
func both(t *testing.T, test func(t *testing.T, on bool)) {
	t.Run("off", func(t *testing.T) { test(t, false) })
	t.Run("on", func(t *testing.T) { test(t, true) })
}

func TestPodsThatTerminateAreInTheStatusUnlessLeftOut(t *testing.T) {
	both(t, func(t *testing.T, omit bool) {
		s := newScene(t, map[string]bool{"DeploymentReplicaSetTerminatingReplicas": !omit}, "deployment", "replicaset")
		want := map[bool]string{false: "0", true: ""}[omit]
		s.kubectl("create deployment web --image=web --replicas=0")
		for _, kind := range []string{"deployments", "replicasets"} {
			s.await("the status of "+kind+" is written", "get "+kind+" -o jsonpath={.items[*].status.observedGeneration}", func(said string) bool { return said != "" && said != "0" })
			if got := s.kubectl("get " + kind + " -o jsonpath={.items[*].status.terminatingReplicas}"); got != want {
				t.Errorf("%s: terminatingReplicas is %q, want %q", kind, got, want)
			}
		}
	})
}

func TestPodsOfANamespaceThatIsDeletedGoFirst(t *testing.T) {
	s := newScene(t, nil, "namespace")
	s.kubectl("run held --image=web")
	s.kubectl(`patch pod held --type=merge -p {"metadata":{"finalizers":["example.com/held"]}}`)
	s.kubectl("create configmap kept")
	s.kubectl("delete namespace " + s.namespace + " --wait=false")
	s.await("the Pod is found to remain", "get namespace "+s.namespace+" -o jsonpath={.status.conditions[?(@.type=='NamespaceContentRemaining')].status}",
		func(said string) bool { return said == "True" })
	if got := s.kubectl("get configmap kept --ignore-not-found -o jsonpath={.metadata.name}"); got != "kept" {
		t.Errorf("the ConfigMap is %q, want it kept", got)
	}
	s.kubectl(`patch pod held --type=merge -p {"metadata":{"finalizers":null}}`)
}

func TestOfTwoPodsTheCheaperGoesUnlessCostsAreIgnored(t *testing.T) {
	both(t, func(t *testing.T, ignore bool) {
		s := newScene(t, map[string]bool{"PodDeletionCost": !ignore}, "deployment", "replicaset")
		s.kubectl("create deployment web --image=web --replicas=2")
		var pods []string
		s.await("there are two Pods", "get pods -o jsonpath={.items[*].metadata.name}", func(said string) bool {
			pods = strings.Fields(said)
			return len(pods) == 2
		})
		cheap, restarted := pods[0], pods[1]
		s.kubectl("annotate pod " + cheap + " controller.kubernetes.io/pod-deletion-cost=-1")
		s.kubectl("patch pod " + restarted + ` --subresource=status --type=merge -p {"status":{"containerStatuses":[{"name":"web","image":"web","imageID":"","ready":false,"restartCount":5}]}}`)
		for end := time.Now().Add(controlplanetest.Patience); ; time.Sleep(10 * time.Millisecond) {
			pod, err := s.pods.Get(object.Key{Namespace: s.namespace, Name: restarted})
			if err == nil && len(pod.Status.ContainerStatuses) > 0 {
				break // what came before it has been seen as well
			}
			if time.Now().After(end) {
				t.Fatalf("the controllers do not see the restarts: %v", err)
			}
		}
		want := map[bool]string{false: restarted, true: cheap}[ignore]
		s.kubectl("scale deployment web --replicas=1")
		s.await("one Pod is left", "get pods -o jsonpath={.items[*].metadata.name}", func(said string) bool { return len(strings.Fields(said)) == 1 })
		if got := s.kubectl("get pods -o jsonpath={.items[*].metadata.name}"); got != want {
			t.Errorf("%s is left of the cheap %s and the restarted %s, want %s", got, cheap, restarted, want)
		}
	})
}

func TestServicesThatPreferTheSameZoneGetHintsUnlessOnlyCloseCounts(t *testing.T) {
	both(t, func(t *testing.T, onlyClose bool) {
		s := newScene(t, map[string]bool{"PreferSameTrafficDistribution": !onlyClose}, "endpointslice")
		node := "node-of-" + s.namespace
		s.apply(`{apiVersion: v1, kind: Node, metadata: {name: ` + node + `, labels: {topology.kubernetes.io/zone: here}}}`)
		s.apply(`{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: a}}, spec: {nodeName: ` + node + `, containers: [{name: a, image: a}]}}`)
		s.kubectl(`patch pod a --subresource=status --type=merge -p {"status":{"phase":"Running","podIP":"10.1.1.1","podIPs":[{"ip":"10.1.1.1"}],"conditions":[{"type":"Ready","status":"True"}]}}`)
		s.apply(`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: a}, trafficDistribution: PreferSameZone, ports: [{port: 80}]}}`)
		s.await("there is an endpoint that is ready", "get endpointslices -o jsonpath={.items[*].endpoints[*].conditions.ready}", func(said string) bool { return said == "true" })
		want := map[bool]string{false: "here", true: ""}[onlyClose]
		if got := s.kubectl("get endpointslices -o jsonpath={.items[*].endpoints[*].hints.forZones[*].name}"); got != want {
			t.Errorf("the endpoint is for zone %q, want %q", got, want)
		}
	})
}

// apply makes an object of the namespace.
func (s *scene) apply(object string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte(object), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.kubectl("apply -f " + file)
}
