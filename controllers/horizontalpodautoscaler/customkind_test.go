// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/documenttest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var rollouts = object.Resource{Group: "scaled.example.com", Version: "v1", Plural: "rollouts", Kind: "Rollout", Namespaced: true}

// TestTargetsOfARealServerThatAreScalesOrNone is with the scale that the real API server makes of
// objects of a custom kind, whose schema allows anything, and with its answers for kinds without one. The
// server refuses objects whose size is negative or no number, and targets in the core group.
func TestTargetsOfARealServerThatAreScalesOrNone(t *testing.T) {
	cluster := shared.Get(t)
	cluster.DefineScaled(t, rollouts)
	t.Cleanup(func() { cluster.Undefine(t, rollouts) })
	namespace := cluster.Namespace(t)
	config := rest.CopyConfig(cluster.Restricted(t, Rights()))
	metrics := &metricsServer{values: map[string]string{
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/" + namespace + "/queue": `{"items":[{"metricName":"queue","value":"3"}]}`,
	}}
	config.Wrap(metrics.wrap)
	p := managertest.Run(t, config, managertest.Making(New, Defaults()))
	for name, test := range map[string]struct {
		object    string // of the kind Rollout, or empty
		ref       autoscalingv2.CrossVersionObjectReference
		condition string
		size      int32
	}{
		"right":       {object: `"spec":{"replicas":2},"status":{"replicas":2,"selector":"app=right"}`, condition: "ScalingActive=True ValidMetricFound", size: 3},
		"no-selector": {object: `"spec":{"replicas":2}`, condition: "ScalingActive=False InvalidSelector: the HPA target's scale is missing a selector"},
		"bad-selector": {
			object: `"spec":{"replicas":2},"status":{"replicas":2,"selector":"app in ("}`, condition: "ScalingActive=False InvalidSelector: couldn't convert selector",
		},
		"no-size":      {object: `"spec":{}`, condition: `the spec replicas field ".spec.replicas" does not exist`},
		"gone":         {ref: autoscalingv2.CrossVersionObjectReference{APIVersion: rollouts.APIVersion(), Kind: "Rollout", Name: "gone"}, condition: `rollouts.scaled.example.com "gone" not found`},
		"daemonset":    {ref: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent"}, condition: "daemonsets.apps does not implement the scale subresource"},
		"unknown":      {ref: autoscalingv2.CrossVersionObjectReference{APIVersion: "example.com/v1", Kind: "Nothing", Name: "web"}, condition: "the server serves no kind Nothing in example.com/v1"},
		"storageclass": {ref: autoscalingv2.CrossVersionObjectReference{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: "web"}, condition: "have no namespace, and a HorizontalPodAutoscaler scales objects of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := object.Key{Namespace: namespace, Name: name}
			if test.object != "" {
				test.ref = autoscalingv2.CrossVersionObjectReference{APIVersion: rollouts.APIVersion(), Kind: "Rollout", Name: name}
				body := fmt.Sprintf(`{"apiVersion":%q,"kind":"Rollout","metadata":{"name":%q},%s}`, rollouts.APIVersion(), name, test.object)
				if _, err := cluster.Client.Request(http.MethodPost).Resource(rollouts).Namespace(namespace).Body("application/json", []byte(body)).Do(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			hpa := autoscaler(1, 10, measuring(queue("1")))
			hpa.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: name}
			hpa.Spec.ScaleTargetRef = test.ref
			if _, err := client.For[*autoscalingv2.HorizontalPodAutoscaler](cluster.Client).Create(t.Context(), hpa); err != nil {
				t.Fatal(err)
			}
			controlplanetest.Await(t, p, key, test.condition, func(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
				return strings.Contains(conditions(hpa), test.condition) && (test.size == 0 || hpa.Status.DesiredReplicas == test.size)
			})
		})
	}
}

// TestTheDocumentedAnnotationLeavesThePodsOfOthersOut runs the command of docs/controllers.md.
func TestTheDocumentedAnnotationLeavesThePodsOfOthersOut(t *testing.T) {
	blocks := documenttest.Blocks(t)
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	config := rest.CopyConfig(cluster.Restricted(t, Rights()))
	metrics := &metricsServer{values: map[string]string{
		"/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods": podMetrics("cpu", map[string]string{"web-1-0": "100m", "backup-0": "0"}),
	}}
	config.Wrap(metrics.wrap)
	p := managertest.Run(t, config, managertest.Making(New, Defaults()))
	key := object.Key{Namespace: namespace, Name: "web"}
	deployments := client.For[*appsv1.Deployment](cluster.Client)
	createDeployment(t, deployments, namespace, 1)
	for name, owner := range map[string][]metav1.OwnerReference{"web-1-0": controlledBy("ReplicaSet", "web-1"), "backup-0": controlledBy("Job", "backup")} {
		pod := running(name, map[string]string{"app": "web", "pod-template-hash": "1"})
		status := pod.Status
		pod.Namespace, pod.OwnerReferences, pod.Status = namespace, owner, corev1.PodStatus{}
		pod.Spec.SchedulerName, pod.Spec.Containers[0].Image = "nobody", "web"
		made, err := client.For[*corev1.Pod](cluster.Client).Create(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		made.Status = status
		if _, err := client.For[*corev1.Pod](cluster.Client).UpdateStatus(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	hpa := autoscaler(1, 10)
	hpa.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "web"}
	if _, err := client.For[*autoscalingv2.HorizontalPodAutoscaler](cluster.Client).Create(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, p, key, "the Pod of the Job counts", func(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
		return strings.Contains(conditions(hpa), "2 Pods counted by their metrics; the selector of the target selects 1 Pod of others too: Job backup")
	})
	if d, err := deployments.Get(t.Context(), key); err != nil || *d.Spec.Replicas != 1 {
		t.Fatalf("the Deployment is %+v (%v)", d, err)
	}
	for _, b := range blocks {
		args := strings.Fields(b.Text)
		if args[0] != "kubectl" {
			t.Fatalf("%s has the command %s", b, args[0])
		}
		if out, err := cluster.Kubectl(append([]string{"--namespace", namespace}, args[1:]...)...); err != nil {
			t.Fatalf("%s: %v: %s", b, err, out)
		}
	}
	controlplanetest.Await(t, p, key, "it does not", func(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
		return hpa.Status.DesiredReplicas == 2 && strings.Contains(conditions(hpa), "1 Pod counted by their metrics, 1 metric is of no Pod of the target; left out: 1 Pod of others that the selector of the target selects (Job backup)")
	})
}
