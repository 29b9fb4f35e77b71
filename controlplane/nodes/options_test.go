// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
)

func TestRunRefusesOptionsItCannotWorkWith(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	stage := func(text string) []string {
		file := filepath.Join(t.TempDir(), "stage.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{file}
	}
	const head = "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: mine}\n"
	for _, test := range []struct {
		name string
		opts Options
		want string
	}{
		{"no Config", Options{Nodes: 1}, "no Config"},
		{"negative Nodes", Options{Config: config, Nodes: -1}, "-1 Nodes: 0 to 16384"},
		{"too many Nodes", Options{Config: config, Nodes: MaxNodes + 1}, "16385 Nodes"},
		{"more Pods than addresses", Options{Config: config, Nodes: MaxNodes, Pods: 1000}, "no room for the Pods of node 16383"},
		{"negative Pods", Options{Config: config, Pods: -1}, "-1 Pods a Node"},
		{"limits the wrong way round", Options{Config: config, Backoff: time.Hour, MaxBackoff: time.Second}, "Backoff 1h0m0s and MaxBackoff 1s"},
		{"a server for every client", Options{Config: config, Serving: &tls.Config{ClientAuth: tls.RequireAnyClientCert}}, "Serving lets every client connect"},
		{"negative Workers", Options{Config: config, Workers: -1}, "-1 Workers"},
		{"no such file", Options{Config: config, StageFiles: []string{"missing.yaml"}}, "reading stages: open missing.yaml"},
		{"not YAML", Options{Config: config, StageFiles: stage("{")}, "stages in"},
		{"not a Stage", Options{Config: config, StageFiles: stage("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")}, `stage "x": it is a v1 Pod`},
		{"a Stage of another version", Options{Config: config, StageFiles: stage("apiVersion: kwok.x-k8s.io/v2\nkind: Stage\nmetadata: {name: x}\n")}, `stage "x": it is a kwok.x-k8s.io/v2 Stage and has to be`},
		{"an unknown field", Options{Config: config, StageFiles: stage(head + "spec: {dealy: {}}\n")}, `unknown field "dealy"`},
		{"no selector", Options{Config: config, StageFiles: stage(head + "spec: {resourceRef: {apiGroup: v1, kind: Pod}}\n")}, "no spec.selector"},
		{"another kind", Options{Config: config, StageFiles: stage(head + "spec: {resourceRef: {apiGroup: v1, kind: Secret}, selector: {}}\n")}, "only v1 Pod and v1 Node"},
		{"a bad query", Options{Config: config, StageFiles: stage(head + "spec: {resourceRef: {apiGroup: v1, kind: Pod}, selector: {matchExpressions: [{key: '.[', operator: Exists}]}}\n")}, "selector.matchExpressions[0]"},
		{"a bad weight", Options{Config: config, StageFiles: stage(head + "spec: {resourceRef: {apiGroup: v1, kind: Pod}, selector: {}, weightFrom: {expressionFrom: '.['}}\n")}, "weightFrom"},
		{"a step that applies", Options{Config: config, StageFiles: stage(head + "spec: {resourceRef: {apiGroup: v1, kind: Pod}, selector: {}, steps: [{apply: {template: x}}]}\n")}, "not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Run(t.Context(), test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestCapacityIsAddedToAndReplaced(t *testing.T) {
	got := Options{Pods: 7, Capacity: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), "example.com/gpu": resource.MustParse("8"),
	}}.capacity()
	for name, want := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: "4", "example.com/gpu": "8", corev1.ResourcePods: "7", corev1.ResourceMemory: "256Gi",
	} {
		if q := got[name]; q.String() != want {
			t.Errorf("%s is %s, want %s", name, q.String(), want)
		}
	}
}
