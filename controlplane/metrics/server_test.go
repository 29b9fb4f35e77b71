// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	customv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalv1beta1 "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fakeCluster has Pods and Nodes, and other objects by "resource.group".
type fakeCluster struct {
	pods    []*corev1.Pod
	nodes   []*corev1.Node
	objects map[string][]unstructured.Unstructured
	err     error // of reading objects
}

func (c *fakeCluster) Pods(namespace string) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(c.pods), func(pod *corev1.Pod) bool { return namespace != "" && pod.Namespace != namespace })
}

func (c *fakeCluster) Nodes() []*corev1.Node { return c.nodes }

func (c *fakeCluster) read(_ context.Context, q customRequest) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for _, o := range c.objects[q.resource.String()] {
		if o.GetNamespace() == q.namespace && (q.name == customv1beta2.AllObjects || q.name == o.GetName()) &&
			q.selector.Matches(labels.Set(o.GetLabels())) {
			out = append(out, o)
		}
	}
	return out, c.err
}

// add makes a Pod that is running and ready since a minute, on node-0.
func (c *fakeCluster) add(name string, annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{UID: "replicaset", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "node-0"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: new(metav1.NewTime(begin)),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for pair := range slices.Chunk(annotations, 2) {
		pod.Annotations[pair[0]] = pair[1]
	}
	run(pod, "app", "", "")
	c.pods = append(c.pods, pod)
	return pod
}

// run adds a running container to a Pod.
func run(pod *corev1.Pod, name, cpu, memory string) {
	container := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	if cpu != "" {
		container.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		container.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	pod.Spec.Containers = append(pod.Spec.Containers, container)
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
		Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(begin)}},
	})
}

// get requests a path, a minute after everything has begun.
func (c *fakeCluster) get(path string) *httptest.ResponseRecorder {
	s := &Server{Options: Options{Cluster: c}, objects: c, now: func() time.Time { return begin.Add(time.Minute) }}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// decode requests a path and returns the object that is the answer.
func decode[T any](t *testing.T, c *fakeCluster, path string) T {
	t.Helper()
	w := c.get(path)
	var object T
	if err := json.Unmarshal(w.Body.Bytes(), &object); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s: %v", path, w.Code, w.Body, err)
	}
	return object
}

// usage is the metrics of a Pod as a line of text.
func usage(m metricsv1beta1.PodMetrics) string {
	var containers []string
	for _, c := range m.Containers {
		containers = append(containers, fmt.Sprintf("%s %s %s", c.Name, c.Usage.Cpu(), c.Usage.Memory()))
	}
	return m.Name + ": " + strings.Join(containers, ", ")
}

func (c *fakeCluster) usages(t *testing.T, path string) string {
	t.Helper()
	var lines []string
	for _, m := range decode[metricsv1beta1.PodMetricsList](t, c, path).Items {
		lines = append(lines, usage(m))
	}
	return strings.Join(lines, "\n")
}

const podsPath = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"

func TestPodsUseWhatTheirAnnotationsState(t *testing.T) {
	for name, test := range map[string]struct {
		pod  func(*fakeCluster)
		want string
	}{
		"half of the requests without annotations": {
			func(c *fakeCluster) {
				pod := c.add("web")
				run(pod, "db", "500m", "64Mi")
			},
			"web: app 1m 16Mi, db 250m 32Mi",
		},
		"each container the same": {
			func(c *fakeCluster) { run(c.add("web", UsageCPU, "2", UsageMemory, "1Gi"), "db", "1", "1Mi") },
			"web: app 2 1Gi, db 2 1Gi",
		},
		"one container other than the rest": {
			func(c *fakeCluster) {
				run(c.add("web", UsageCPU, "2", UsageCPU+".db", "3", UsageMemory+".app", "1Mi"), "db", "", "")
			},
			"web: app 2 1Mi, db 3 16Mi",
		},
		"a course": {
			func(c *fakeCluster) { c.add("web", UsageCPU, "100m..300m over 2m") },
			"web: app 200m 16Mi",
		},
		"a load that the ready Pods of an owner share": {
			func(c *fakeCluster) {
				c.add("a", UsageCPU, "600m shared")
				c.add("b", UsageCPU, "600m shared")
				c.add("deleted", UsageCPU, "600m shared").DeletionTimestamp = new(metav1.Now())
				c.add("unready", UsageCPU, "600m shared").Status.Conditions = nil
				c.add("other", UsageCPU, "600m shared").OwnerReferences[0].UID = types.UID("other")
				c.add("single", UsageCPU, "600m shared").OwnerReferences = nil
			},
			"a: app 300m 16Mi\nb: app 300m 16Mi\ndeleted: app 0 16Mi\nother: app 600m 16Mi\nsingle: app 600m 16Mi\nunready: app 0 16Mi",
		},
		"no metrics of what does not run": {
			func(c *fakeCluster) {
				c.add("waits").Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
				half := c.add("half")
				run(half, "db", "1", "1Mi")
				half.Status.ContainerStatuses = half.Status.ContainerStatuses[:1]
			},
			"half: app 1m 16Mi",
		},
		"no metrics if the annotations say so": {
			func(c *fakeCluster) {
				c.add("hidden", UsageCPU, "none", UsageMemory, "none")
				run(c.add("part", UsageCPU+".app", "none", UsageMemory+".app", "none"), "db", "", "")
			},
			"part: db 1m 16Mi",
		},
		"annotations that cannot be understood are ignored": {
			func(c *fakeCluster) { c.add("web", UsageCPU, "-1", UsageMemory+".app", "x", UsageMemory, "3Mi") },
			"web: app 1m 3Mi",
		},
		"sidecars": {
			func(c *fakeCluster) {
				pod := c.add("web")
				run(pod, "sidecar", "2", "2Mi")
				pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.Containers[1:], pod.Spec.Containers[:1]
				pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[1:], pod.Status.ContainerStatuses[:1]
			},
			"web: app 1m 16Mi, sidecar 1 1Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := new(fakeCluster)
			test.pod(c)
			if got := c.usages(t, podsPath); got != test.want {
				t.Errorf("the usage is\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestMetricsOfPodsAreListedAsSelected(t *testing.T) {
	c := new(fakeCluster)
	c.add("b")
	c.add("a").Labels["app"] = "db"
	c.add("c").Namespace = "other"
	all := "/apis/metrics.k8s.io/v1beta1/pods"
	for path, want := range map[string]string{
		podsPath:                              "a: app 1m 16Mi\nb: app 1m 16Mi",
		all:                                   "c: app 1m 16Mi\na: app 1m 16Mi\nb: app 1m 16Mi",
		podsPath + "?labelSelector=app%3Dweb": "b: app 1m 16Mi",
		podsPath + "?fieldSelector=metadata.name%3Da":             "a: app 1m 16Mi",
		all + "?fieldSelector=metadata.namespace%3Dother":         "c: app 1m 16Mi",
		podsPath + "?labelSelector=app%3Dweb,x&resourceVersion=0": "",
	} {
		if got := c.usages(t, path); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
		}
	}
	one := decode[metricsv1beta1.PodMetrics](t, c, podsPath+"/b")
	if usage(one) != "b: app 1m 16Mi" || one.Kind != "PodMetrics" || one.Labels["app"] != "web" ||
		!one.Timestamp.Time.Equal(begin.Add(time.Minute)) || one.Window.Duration != Window {
		t.Errorf("the metrics of one Pod are %+v", one)
	}
}

func TestNodesUseWhatTheirPodsUse(t *testing.T) {
	c := &fakeCluster{nodes: []*corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "node-0", Labels: map[string]string{"zone": "a"}}},
	}}
	c.add("a", UsageCPU, "300m", UsageMemory, "1Gi")
	run(c.add("b", UsageCPU, "200m", UsageMemory, "1Mi"), "db", "", "")
	c.add("elsewhere").Spec.NodeName = "node-2"
	root := "/apis/metrics.k8s.io/v1beta1/nodes"
	list := decode[metricsv1beta1.NodeMetricsList](t, c, root)
	var got []string
	for _, m := range list.Items {
		got = append(got, fmt.Sprintf("%s %s %s", m.Name, m.Usage.Cpu(), m.Usage.Memory()))
	}
	if want := []string{"node-0 700m 1026Mi", "node-1 0 0"}; !slices.Equal(got, want) {
		t.Errorf("Nodes use %q, want %q", got, want)
	}
	if selected := decode[metricsv1beta1.NodeMetricsList](t, c, root+"?labelSelector=zone%3Da"); len(selected.Items) != 1 {
		t.Errorf("a selector has %d Nodes, want 1", len(selected.Items))
	}
	if one := decode[metricsv1beta1.NodeMetrics](t, c, root+"/node-0"); one.Usage.Cpu().String() != "700m" || one.Kind != "NodeMetrics" {
		t.Errorf("the metrics of one Node are %+v", one)
	}
}

// object makes an object of another kind than a Pod.
func object(apiVersion, kind, namespace, name string, annotations ...string) unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{"name": name})
	o.SetCreationTimestamp(metav1.NewTime(begin))
	values := map[string]string{}
	for pair := range slices.Chunk(annotations, 2) {
		values[pair[0]] = pair[1]
	}
	o.SetAnnotations(values)
	return o
}

func TestCustomMetricsAreThoseOfTheAnnotations(t *testing.T) {
	c := &fakeCluster{objects: map[string][]unstructured.Unstructured{
		"deployments.apps": {object("apps/v1", "Deployment", "shop", "web", MetricPrefix+"backlog", "0..10 over 2m"), object("apps/v1", "Deployment", "shop", "db")},
		"namespaces":       {object("v1", "Namespace", "", "shop", MetricPrefix+"sales", "-7")},
		"nodes":            {object("v1", "Node", "", "node-0", MetricPrefix+"heat", "40")},
	}}
	c.add("a", MetricPrefix+"requests", "12")
	c.add("b", MetricPrefix+"requests", "1..3 over 2m").Labels["app"] = "db"
	c.add("ended", MetricPrefix+"requests", "1").Status.Phase = corev1.PodSucceeded
	c.add("hidden", MetricPrefix+"requests", "none")
	c.add("wrong", MetricPrefix+"requests", "many")
	root := "/apis/custom.metrics.k8s.io/v1beta2"
	for path, want := range map[string]string{
		"/namespaces/shop/pods/*/requests":                         "v1 Pod shop/a 12, v1 Pod shop/b 2",
		"/namespaces/shop/pods/*/requests?labelSelector=app%3Dweb": "v1 Pod shop/a 12",
		"/namespaces/shop/pods/b/requests?labelSelector=app%3Dweb": "v1 Pod shop/b 2",
		"/namespaces/shop/deployments.apps/web/backlog":            "apps/v1 Deployment shop/web 5",
		"/namespaces/shop/deployments.apps/*/backlog":              "apps/v1 Deployment shop/web 5",
		"/namespaces/shop/metrics/sales":                           "v1 Namespace /shop -7",
		"/nodes/node-0/heat":                                       "v1 Node /node-0 40",
	} {
		var got []string
		for _, v := range decode[customv1beta2.MetricValueList](t, c, root+path).Items {
			d := v.DescribedObject
			got = append(got, fmt.Sprintf("%s %s %s/%s %s", d.APIVersion, d.Kind, d.Namespace, d.Name, &v.Value))
			if !strings.Contains(path, v.Metric.Name) || v.Timestamp.IsZero() {
				t.Errorf("%s: the value is %+v", path, v)
			}
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%s: %s, want %s", path, all, want)
		}
	}
}

func TestExternalMetricsAreThoseOfConfigMaps(t *testing.T) {
	c := &fakeCluster{objects: map[string][]unstructured.Unstructured{"configmaps": {
		object("v1", "ConfigMap", "shop", "mails", MetricPrefix+"queue_length", "30"),
		object("v1", "ConfigMap", "shop", "orders", MetricPrefix+"queue_length", "0..10 every 2m"),
		object("v1", "ConfigMap", "shop", "none", MetricPrefix+"queue_length", "none"),
		object("v1", "ConfigMap", "shop", "ca"),
	}}}
	path := "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/"
	for query, want := range map[string]string{
		"queue_length": "queue_length mails 30, queue_length orders 10",
		"queue_length?labelSelector=name%3Dmails":    "queue_length mails 30",
		"queue_length?labelSelector=name%3Dinvoices": "",
		"unknown": "",
	} {
		var got []string
		for _, v := range decode[externalv1beta1.ExternalMetricValueList](t, c, path+query).Items {
			got = append(got, fmt.Sprintf("%s %s %s", v.MetricName, v.MetricLabels["name"], &v.Value))
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%s: %s, want %s", query, all, want)
		}
	}
}

func TestRequestsThatCannotBeMetSayWhy(t *testing.T) {
	c := &fakeCluster{objects: map[string][]unstructured.Unstructured{
		"services":   {object("v1", "Service", "shop", "web", MetricPrefix+"wrong", "many", MetricPrefix+"split", "4 shared")},
		"configmaps": {object("v1", "ConfigMap", "shop", "queue", MetricPrefix+"wrong", "")},
	}}
	c.add("web", MetricPrefix+"requests", "12").Status.ContainerStatuses = nil
	custom := "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/"
	for path, want := range map[string]struct {
		code    int
		message string
	}{
		podsPath + "/web":                                             {http.StatusNotFound, `pods.metrics.k8s.io "web" not found`},
		podsPath + "/db":                                              {http.StatusNotFound, `pods.metrics.k8s.io "db" not found`},
		podsPath + "?labelSelector=%3D":                               {http.StatusBadRequest, "labelSelector: "},
		podsPath + "?fieldSelector=x":                                 {http.StatusBadRequest, "fieldSelector: "},
		podsPath + "?fieldSelector=spec%3D":                           {http.StatusBadRequest, `fieldSelector: no field "spec"; choose metadata.name or metadata.namespace`},
		podsPath + "?watch=true":                                      {http.StatusMethodNotAllowed, "watch is not supported"},
		"/apis/metrics.k8s.io/v1beta1/nodes/node-7":                   {http.StatusNotFound, `nodes.metrics.k8s.io "node-7" not found`},
		custom + "pods/web/nope":                                      {http.StatusNotFound, "namespace shop: pods web has no metric nope; the annotation sim.setpoint.io/metric.nope gives it one"},
		custom + "pods/*/nope":                                        {http.StatusNotFound, "namespace shop: none of the pods has a metric nope; the annotation sim.setpoint.io/metric.nope gives it one"},
		custom + "pods/*/nope?labelSelector=app%3Dx":                  {http.StatusNotFound, "namespace shop: none of the pods with labels app=x has a metric nope;"},
		custom + "pods/*/requests?metricLabelSelector=verb%3DGET":     {http.StatusNotFound, `metric requests has no labels, and the selector "verb=GET" of the metric requires some`},
		custom + "pods/*/requests?metricLabelSelector=%3D":            {http.StatusBadRequest, "metricLabelSelector: "},
		custom + "services/db/split":                                  {http.StatusNotFound, "namespace shop: services db has no metric split;"},
		custom + "services/web/wrong":                                 {http.StatusInternalServerError, `Service web: annotation sim.setpoint.io/metric.wrong: "many" is not a quantity`},
		custom + "services/web/split":                                 {http.StatusInternalServerError, `Service web: annotation sim.setpoint.io/metric.split: only a Pod can have a value that is "shared"`},
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/wrong": {http.StatusInternalServerError, `ConfigMap queue: annotation sim.setpoint.io/metric.wrong: "" is not a value`},
	} {
		w := c.get(path)
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || w.Code != want.code || int(status.Code) != want.code ||
			status.Kind != "Status" || !strings.Contains(status.Message, want.message) {
			t.Errorf("%s: %d %s, want %d with %q", path, w.Code, w.Body, want.code, want.message)
		}
	}
	c.err = errors.New("no API server")
	if w := c.get(custom + "services/web/x"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "no API server") {
		t.Errorf("without an API server the answer is %d %s", w.Code, w.Body)
	}
}

func TestDiscoveryHasTheResources(t *testing.T) {
	for a, want := range map[api]string{resourceMetrics: "nodes pods", customMetrics: "", externalMetrics: ""} {
		list := decode[metav1.APIResourceList](t, new(fakeCluster), a.path())
		var names []string
		for _, r := range list.APIResources {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != want || list.GroupVersion != a.version.String() || list.APIResources == nil {
			t.Errorf("%s: %+v, want the resources %q", a.path(), list, want)
		}
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	good := Options{Config: &rest.Config{}, Cluster: new(fakeCluster), Serving: Serving{TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}}
	if _, err := good.withDefaults(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"no Config":                  func(o *Options) { o.Config = nil },
		"no Cluster":                 func(o *Options) { o.Cluster = nil },
		"Serving lets every client":  func(o *Options) { o.Serving.TLS = &tls.Config{ClientAuth: tls.RequestClientCert} },
		"has to be RequireAndVerify": func(o *Options) { o.Serving.TLS = nil },
	} {
		opts := good
		change(&opts)
		if _, err := New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func TestAnnotationsOfPodsAreChecked(t *testing.T) {
	pod := new(fakeCluster).add("web")
	for name, test := range map[string]struct{ value, problem string }{
		UsageCPU:                 {"200m", ""},
		UsageMemory + ".app":     {"none", ""},
		MetricPrefix + "a.b":     {"-1 shared", ""},
		UsageCPU + ".db":         {"1", `the Pod has no container "db"`},
		UsageMemory:              {"1..-1 over 1s", `"1..-1 over 1s" is negative`},
		MetricPrefix + "latency": {"?", "is not a quantity"},
	} {
		err := CheckAnnotation(pod, name, test.value)
		if !IsAnnotation(name) || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s=%s: known: %t, %v, want %q", name, test.value, IsAnnotation(name), err, test.problem)
		}
	}
	for _, name := range []string{"sim.setpoint.io/usage", "sim.setpoint.io/usage-disk", "sim.setpoint.io/metrics", "example.com/usage-cpu", "usage-cpu"} {
		if IsAnnotation(name) {
			t.Errorf("%s counts as an annotation that states a value", name)
		}
	}
}
