// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// replaying answers requests for scales and metrics with the same bytes each time, so that a benchmark does not measure a
// server.
type replaying struct {
	next http.RoundTripper

	mu     sync.Mutex
	kept   map[string]*http.Response
	bodies map[string][]byte
}

func (r *replaying) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method != http.MethodGet || !strings.HasSuffix(q.URL.Path, "/scale") && !strings.Contains(q.URL.Path, "metrics.k8s.io") {
		return r.next.RoundTrip(q)
	}
	key := q.URL.RequestURI()
	r.mu.Lock()
	answer, known := r.kept[key]
	body := r.bodies[key]
	r.mu.Unlock()
	if !known {
		var err error
		if answer, err = r.next.RoundTrip(q); err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(answer.Body); err != nil {
			return nil, err
		}
		r.mu.Lock()
		r.kept[key], r.bodies[key] = answer, body
		r.mu.Unlock()
	}
	again := *answer
	again.Body, again.Request = io.NopCloser(bytes.NewReader(body)), q
	return &again, nil
}

// usage answers what metrics-server does for the two Pods of a target.
type usage struct{ next http.RoundTripper }

func (u usage) RoundTrip(q *http.Request) (*http.Response, error) {
	if !strings.Contains(q.URL.Path, "metrics.k8s.io") {
		return u.next.RoundTrip(q)
	}
	name := strings.TrimPrefix(q.URL.Query().Get("labelSelector"), "app=")
	var items []string
	for i := range 2 {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"%s-1-%d","namespace":"shop","creationTimestamp":"2026-03-02T10:00:00Z",`+
			`"labels":{"app":%q,"pod-template-hash":"1"}},"timestamp":"2026-03-02T09:59:47Z","window":"15.043s",`+
			`"containers":[{"name":"main","usage":{"cpu":"50123456n","memory":"12345Ki"}}]}`, name, i, name))
	}
	body := `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: q,
	}, nil
}

// BenchmarkATargetAtRest is a run for a target of two Pods whose size is right, among others in its namespace. The server's
// work and that of the connection are not in it.
func BenchmarkATargetAtRest(b *testing.B) {
	for _, others := range []int{0, 500} {
		b.Run(fmt.Sprint("among ", others), func(b *testing.B) {
			api := fakeapi.New()
			autoscalers := api.Serve(kind, fakeapi.WithStatus())
			deployments := api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}, fakeapi.WithStatus())
			pods := api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, fakeapi.WithStatus())
			put := func(r *fakeapi.Resource, o object.Object) {
				if err := r.Put(o); err != nil {
					b.Fatal(err)
				}
			}
			for i := range others + 1 {
				name := fmt.Sprint("web-", i)
				labels := map[string]string{"app": name}
				put(deployments, &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1},
					Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
					Status:     appsv1.DeploymentStatus{Replicas: 2},
				})
				for j := range 2 {
					put(pods, scheduled(fmt.Sprintf("%s-1-%d", name, j), name))
				}
				hpa := autoscaler(1, 20, func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef.Name = name })
				hpa.Name, hpa.UID = name, types.UID("hpa-"+name)
				put(autoscalers, hpa)
			}
			config := api.Config()
			config.Transport = &replaying{next: usage{api}, kept: map[string]*http.Response{}, bodies: map[string][]byte{}}
			mgr, err := manager.New(config, manager.Log(slog.New(slog.DiscardHandler)))
			if err != nil {
				b.Fatal(err)
			}
			r := newReconciler(mgr, Defaults(), time.Now)
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error)
			go func() { ended <- mgr.InformerFactory().Run(ctx) }()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					b.Error(err)
				}
			}()
			if err := r.autoscalers.WaitForSync(ctx); err != nil {
				b.Fatal(err)
			}
			if err := r.pods.WaitForSync(ctx); err != nil {
				b.Fatal(err)
			}
			run := func(i int) {
				req := controller.Request{Key: object.Key{Namespace: "shop", Name: fmt.Sprint("web-", i)}}
				if _, err := r.reconcile(ctx, req); err != nil {
					b.Fatal(err)
				}
			}
			for i := range others + 1 {
				run(i) // which writes the status, the first time
			}
			controlplanetest.Eventually(b, "the cache has the statuses", func() bool {
				all, err := r.autoscalers.Snapshot().List("shop", nil)
				return err == nil && !slices.ContainsFunc(all, func(hpa *autoscalingv2.HorizontalPodAutoscaler) bool { return hpa.Status.DesiredReplicas != 2 })
			})
			api.Forget()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				run(n % (others + 1))
			}
			for _, call := range api.Calls() {
				if strings.HasPrefix(call, "update") {
					b.Fatalf("a target at rest is written: %s", call)
				}
			}
		})
	}
}

// scheduled returns a Pod as it is on a node, with what the API server and the kubelet add to it.
func scheduled(name, app string) *corev1.Pod {
	p := running(name, map[string]string{"app": app, "pod-template-hash": "1"})
	p.UID, p.OwnerReferences = types.UID(name), controlledBy("ReplicaSet", app+"-1")
	p.Spec.NodeName, p.Spec.ServiceAccountName, p.Spec.SchedulerName, p.Spec.DNSPolicy = "node-1", "default", "default-scheduler", corev1.DNSClusterFirst
	p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-abcde", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}}
	p.Spec.Tolerations = []corev1.Toleration{
		{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
	}
	c := &p.Spec.Containers[0]
	c.Image, c.ImagePullPolicy, c.TerminationMessagePath = "registry.example.com/web:1", corev1.PullIfNotPresent, "/dev/termination-log"
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-abcde", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
	for _, typ := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: *p.Status.StartTime})
	}
	p.Status.PodIP, p.Status.HostIP = "10.0.0.1", "192.168.0.1"
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Ready: true, Image: c.Image, ImageID: "registry.example.com/web@sha256:0123456789abcdef", ContainerID: "containerd://0123456789abcdef",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *p.Status.StartTime}},
	}}
	return p
}
