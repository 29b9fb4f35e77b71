// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// receiver is an OTLP receiver over HTTP.
type receiver struct {
	mu    sync.Mutex
	spans []*trace.Span
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var of collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &of)
	}
	if err != nil || q.URL.Path != "/v1/traces" || q.Header.Get("Token") != "a b" {
		http.Error(w, "want spans", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, spans := range of.ResourceSpans {
		for _, in := range spans.ScopeSpans {
			r.spans = append(r.spans, in.Spans...)
		}
	}
}

// shop is a Deployment of one Pod.
func shop() *appsv1.Deployment {
	labels, one := map[string]string{"app": "web"}, int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}},
		},
	}
}

// The manager exports a span of the run for the Deployment, and the span of the run for its ReplicaSet links to it.
func TestTheRunOfAReplicaSetLinksToThatOfItsDeployment(t *testing.T) {
	var got receiver
	server := httptest.NewServer(&got)
	defer server.Close()
	api := fakeapi.New().Listen()
	defer api.Close()
	deployments := api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true})
	api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true})
	api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	api.Serve(object.Resource{Version: "v1", Plural: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true})
	// A trace that another program has begun.
	web := shop()
	web.Annotations = map[string]string{runs.TraceparentAnnotation: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	if err := deployments.Add(web); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_EXPORTER_OTLP_HEADERS": "token=a%20b",
		"OTEL_BSP_SCHEDULE_DELAY":    "3600000", // all spans go when the manager ends
		"SETPOINT_TRACE_ANNOTATIONS": "true",
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	chosen, err := registry.Select(registry.Known(), []string{"deployment", "replicaset"})
	if err != nil {
		t.Fatal(err)
	}
	options := Traces(func(name string) string { return variables[name] }, "test", logger)
	m, _, err := New(api.Config(), chosen, controllers.Cluster{}, logger, options...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	created := func(controller, kind string) bool {
		found, _ := m.Runs().Find(runs.Query{Controller: controller, Wrote: true})
		for _, run := range found {
			for _, w := range run.Writes {
				if w.Verb == "create" && w.Object.Kind == kind && w.Code == 0 {
					return true
				}
			}
		}
		return false
	}
	for deadline := time.Now().Add(time.Minute); !created("deployment-controller", "ReplicaSet") || !created("replicaset-controller", "Pod"); {
		if time.Now().After(deadline) {
			stop()
			t.Fatalf("no Pod is created, and the manager ended with %v; the log is\n%s", <-ended, log.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	by, of := spanThatCreated(got.spans, "ReplicaSet"), spanThatCreated(got.spans, "Pod")
	if by == nil || of == nil || by.Name != "deployment-controller" || of.Name != "replicaset-controller" {
		t.Fatalf("the spans are %v; the log is\n%s", got.spans, log.String())
	}
	linked := false
	for _, link := range of.Links {
		linked = linked || bytes.Equal(link.SpanId, by.SpanId) && bytes.Equal(link.TraceId, by.TraceId)
	}
	if !linked {
		t.Errorf("the links of the ReplicaSet's run are %v, want one to %v", of.Links, by)
	}
	if len(by.Links) != 1 || fmt.Sprintf("%x-%x", by.Links[0].TraceId, by.Links[0].SpanId) != "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7" {
		t.Errorf("the links of the Deployment's run are %v, want one to the trace on the Deployment", by.Links)
	}
	all, _, err := client.For[*appsv1.ReplicaSet](m.Client()).List(t.Context(), client.Selection{})
	if want := fmt.Sprintf("00-%x-%x-01", by.TraceId, by.SpanId); err != nil || len(all) != 1 || all[0].Annotations[runs.TraceparentAnnotation] != want {
		t.Errorf("the ReplicaSets are %v, %v; want one that carries %s", all, err, want)
	}
}

// spanThatCreated returns the span of the run that created an object of a kind.
func spanThatCreated(spans []*trace.Span, kind string) *trace.Span {
	for _, span := range spans {
		for _, event := range span.Events {
			for _, a := range event.Attributes {
				if event.Name == "create" && a.Key == "setpoint.object.kind" && a.Value.GetStringValue() == kind {
					return span
				}
			}
		}
	}
	return nil
}

// A mistake in the variables is logged, and the manager works without traces. So does one without a record of runs.
func TestAManagerWorksWithoutTraces(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for _, variables := range []map[string]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "a:4317"},
	} {
		log.Reset()
		if options := Traces(func(name string) string { return variables[name] }, "test", logger); options != nil || !strings.Contains(log.String(), "there are no traces") {
			t.Errorf("%v: the log is\n%s", variables, log.String())
		}
	}
	log.Reset()
	if options := Traces(func(string) string { return "" }, "test", logger); options != nil || log.Len() > 0 {
		t.Errorf("without variables there are options; the log is\n%s", log.String())
	}
	options := Traces(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}[name]
	}, "test", logger)
	if _, err := manager.New(fakeapi.New().Config(), append(options, manager.Log(logger), manager.RunRecord(0))...); err != nil || !strings.Contains(log.String(), "runs are not traced") {
		t.Errorf("without a record: %v; the log is\n%s", err, log.String())
	}
}
