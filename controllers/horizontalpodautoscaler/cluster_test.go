// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// createDeployment creates the Deployment "web" of a namespace.
func createDeployment(t *testing.T, deployments client.Typed[*appsv1.Deployment], namespace string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	if _, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
		}},
	}); err != nil {
		t.Fatal(err)
	}
}

// TestADeploymentOfARealServerIsScaled is with the API server's own defaults, scale and status, and
// with the rights that the controller declares. The metric comes from the test.
func TestADeploymentOfARealServerIsScaled(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	config := rest.CopyConfig(cluster.Restricted(t, Rights()))
	metrics := &metricsServer{values: map[string]string{
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/" + namespace + "/queue": `{"items":[{"metricName":"queue","value":"40"}]}`,
	}}
	config.Wrap(metrics.wrap)
	p := managertest.Run(t, config, managertest.Making(New, Defaults()))
	key := object.Key{Namespace: namespace, Name: "web"}
	deployments := client.For[*appsv1.Deployment](cluster.Client)
	createDeployment(t, deployments, namespace, 2)
	hpa := autoscaler(1, 10, slowly, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
		hpa.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "web"}
		// The version is served no longer.
		hpa.Spec.ScaleTargetRef.APIVersion = "apps/v1beta2"
		hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
	})
	autoscalers := client.For[*autoscalingv2.HorizontalPodAutoscaler](cluster.Client)
	if _, err := autoscalers.Create(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	is := controlplanetest.Await(t, p, key, "the status has the new size and the history", func(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
		return hpa.Status.DesiredReplicas == 3 && hpa.Annotations[historyAnnotation] != ""
	})
	if is.Status.ObservedGeneration == nil || *is.Status.ObservedGeneration != is.Generation || is.Status.LastScaleTime == nil {
		t.Errorf("the status is %+v", is.Status)
	}
	d, err := deployments.Get(t.Context(), key)
	if err != nil || *d.Spec.Replicas != 3 {
		t.Errorf("the Deployment is %+v (%v)", d, err)
	}
	// A change of the spec is followed without a wait for the period.
	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"minReplicas": 5}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := autoscalers.Patch(t.Context(), key, patch); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, p, key, "the new minimum", func(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
		return hpa.Status.DesiredReplicas == 5
	})
}
