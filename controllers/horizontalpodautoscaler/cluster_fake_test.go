// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with HorizontalPodAutoscalers, Deployments, Pods and metrics, inside of a bubble
// of synctest. No controller makes Pods: the test does.
type cluster struct {
	t                        *testing.T
	api                      *fakeapi.Server
	autoscalers, deployments *fakeapi.Resource
	pods                     *fakeapi.Resource
	client                   *client.Client
	metrics                  *metricsServer
	options                  Options
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api, options: Defaults(),
		autoscalers: api.Serve(kind, fakeapi.WithStatus()),
		deployments: api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}, fakeapi.WithStatus()),
		pods:        api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, fakeapi.WithStatus()),
		metrics:     &metricsServer{next: api, values: map[string]string{}},
	}
	api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	return c
}

// config leads to the server, with the metrics APIs in front of it.
func (c *cluster) config() *rest.Config {
	config := c.api.Config()
	config.Transport = c.metrics
	return config
}

// start runs the controller. stop ends it.
func (c *cluster) start() (stop func()) {
	c.t.Helper()
	return c.process().Stop
}

func (c *cluster) process() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.config(), managertest.Making(New, c.options))
	synctest.Wait()
	return p
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// deploy makes a Deployment with running Pods that request 100m of CPU each.
func (c *cluster) deploy(name string, replicas int32) {
	c.t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status:     appsv1.DeploymentStatus{Replicas: replicas},
	}
	if err := c.deployments.Put(d); err != nil {
		c.t.Fatal(err)
	}
	c.havePods(name, replicas)
}

// havePods makes the Pods of a Deployment, as many as there should be.
func (c *cluster) havePods(name string, n int32) {
	c.t.Helper()
	for i := range max(n, 20) {
		key := object.Key{Namespace: "shop", Name: fmt.Sprintf("%s-1-%d", name, i)}
		there := c.pods.Get(key) != nil
		switch {
		case i < n && !there:
			p := running(key.Name, map[string]string{"app": name, "pod-template-hash": "1"})
			p.OwnerReferences = controlledBy("ReplicaSet", name+"-1")
			p.Status.StartTime = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			if err := c.pods.Put(p); err != nil {
				c.t.Fatal(err)
			}
		case i >= n && there:
			c.pods.Remove(key)
		}
	}
	synctest.Wait()
}

// controlledBy returns the owner references of an object that another one controls.
func controlledBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
}

// running returns a Pod that has been ready for an hour.
func running(name string, labels map[string]string) *corev1.Pod {
	since := metav1.NewTime(time.Now().Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}},
		}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &since,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}},
		},
	}
}

// autoscaler creates a HorizontalPodAutoscaler of a Deployment, for half of the CPU that its Pods
// request.
func (c *cluster) autoscaler(name string, least, most int32, change ...func(*autoscalingv2.HorizontalPodAutoscaler)) {
	c.t.Helper()
	named := func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef.Name = name }
	hpa := autoscaler(least, most, append([]func(*autoscalingv2.HorizontalPodAutoscaler){named}, change...)...)
	hpa.Name, hpa.UID, hpa.Generation = name, "", 0
	if _, err := client.For[*autoscalingv2.HorizontalPodAutoscaler](c.client).Create(c.t.Context(), hpa); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func autoscaler(least, most int32, change ...func(*autoscalingv2.HorizontalPodAutoscaler)) *autoscalingv2.HorizontalPodAutoscaler {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Generation: 1},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MinReplicas:    &least, MaxReplicas: most,
			Metrics: []autoscalingv2.MetricSpec{cpu(50)},
		},
	}
	for _, f := range change {
		f(hpa)
	}
	return hpa
}

// cpu is a metric whose target is in percent of the requests.
func cpu(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
	}}
}

// queue is an external metric whose target is a share for each replica.
func queue(each string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse(each))},
	}}
}

// edit changes a HorizontalPodAutoscaler as a user does. It may be called from any goroutine.
func (c *cluster) edit(name string, change func(*autoscalingv2.HorizontalPodAutoscaler)) {
	c.t.Helper()
	autoscalers := client.For[*autoscalingv2.HorizontalPodAutoscaler](c.client)
	hpa, err := autoscalers.Get(c.t.Context(), object.Key{Namespace: "shop", Name: name})
	if err == nil {
		change(hpa)
		_, err = autoscalers.Update(c.t.Context(), hpa)
	}
	if err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) hpa(name string) *autoscalingv2.HorizontalPodAutoscaler {
	c.t.Helper()
	hpa, err := client.For[*autoscalingv2.HorizontalPodAutoscaler](c.client).Get(c.t.Context(), object.Key{Namespace: "shop", Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return hpa
}

// size returns how many replicas a Deployment wants.
func (c *cluster) size(name string) int32 {
	c.t.Helper()
	d, err := fakeapi.Read[*appsv1.Deployment](c.deployments, object.Key{Namespace: "shop", Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return *d.Spec.Replicas
}

// resize gives a Deployment another size, as a user does. It may be called from any goroutine.
func (c *cluster) resize(name string, replicas int32) {
	c.t.Helper()
	d, err := fakeapi.Read[*appsv1.Deployment](c.deployments, object.Key{Namespace: "shop", Name: name})
	if err != nil {
		c.t.Error(err)
		return
	}
	d.Spec.Replicas = &replicas
	if err := c.deployments.Put(d); err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) want(when, name string, size int32) {
	c.t.Helper()
	if got := c.size(name); got != size {
		c.t.Fatalf("%s, %s has the size %d, want %d; conditions:\n%s", when, name, got, size, conditions(c.hpa(name)))
	}
}

// conditions returns the conditions as lines.
func conditions(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	var lines []string
	for _, cond := range hpa.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", cond.Type, cond.Status, cond.Reason, cond.Message))
	}
	return strings.Join(lines, "\n")
}

// wantCondition looks for a text in the lines of the conditions.
func (c *cluster) wantCondition(when, name, text string) {
	c.t.Helper()
	if got := conditions(c.hpa(name)); !strings.Contains(got, text) {
		c.t.Fatalf("%s, no condition of %s says %q:\n%s", when, name, text, got)
	}
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) (all []string) {
	c.t.Helper()
	pass(time.Second)
	events, _, err := client.For[*eventsv1.Event](c.client).List(c.t.Context(), client.Selection{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range events {
		if e.Reason == reason {
			all = append(all, e.Note)
		}
	}
	slices.Sort(all)
	return all
}

// metricsServer answers the requests for metrics, and hands the others on.
type metricsServer struct {
	next http.RoundTripper

	mu sync.Mutex
	// values are bodies of answers by paths. A path that is not there is answered with 404.
	values map[string]string
	hang   string // a part of the paths that are never answered
	asked  []string
}

func (m *metricsServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "metrics.k8s.io") {
		return m.next.RoundTrip(r)
	}
	m.mu.Lock()
	body, known := m.values[r.URL.Path]
	hangs := m.hang != "" && strings.Contains(r.URL.Path, m.hang)
	m.asked = append(m.asked, r.URL.Path+"?"+r.URL.RawQuery)
	m.mu.Unlock()
	if hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	code := http.StatusOK
	if !known {
		code, body = http.StatusNotFound, "404 page not found"
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}, nil
}

// wrap puts the metrics APIs in front of a server.
func (m *metricsServer) wrap(next http.RoundTripper) http.RoundTripper {
	m.next = next
	return m
}

func (m *metricsServer) set(path, body string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[path] = body
}

func (m *metricsServer) stall(part string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hang = part
}

// uses sets how much CPU the Pods of a Deployment use, each as much.
func (c *cluster) uses(name string, n int32, quantity string) {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprintf("%s-1-%d", name, i)] = quantity
	}
	c.podMetrics(all)
}

// podMetrics sets how much CPU Pods use.
func (c *cluster) podMetrics(use map[string]string) {
	c.metrics.set("/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods", podMetrics("cpu", use))
}

// podMetrics returns the answer of metrics.k8s.io.
func podMetrics(of string, use map[string]string) string {
	var items []any
	for _, pod := range slices.Sorted(maps.Keys(use)) {
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": pod, "namespace": "shop"}, "timestamp": time.Now().UTC().Format(time.RFC3339), "window": "30s",
			"containers": []any{map[string]any{"name": "main", "usage": map[string]any{of: use[pod]}}},
		})
	}
	text, err := json.Marshal(map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// waits sets the external metric.
func (c *cluster) waits(value string) {
	c.metrics.set("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue",
		fmt.Sprintf(`{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","items":[{"metricName":"queue","value":%q}]}`, value))
}
