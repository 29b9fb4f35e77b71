// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func TestTheTableOfKindsIsWhatAServerServes(t *testing.T) {
	served, err := shared.Get(t).Client.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range served {
		if !s.Can("list") || !s.Can("watch") {
			continue
		}
		name := strings.TrimSuffix(s.Plural+"."+s.Group, ".")
		names = append(names, name)
		want := inCluster
		if s.Namespaced {
			want = inNamespaces
		}
		if got := scopeOf(name); got != want {
			t.Errorf("%s: the scope is %d here, and %d on the server", name, got, want)
		}
		for _, short := range s.Short {
			if meant, ok := builtin.short[short]; ok && meant != name && s.Group != "events.k8s.io" {
				t.Errorf("%s is short for %s here, and for %s on the server", short, meant, name)
			}
		}
	}
	for _, name := range builtin.all {
		if !slices.Contains(names, name) {
			t.Errorf("%s is here, and not on the server", name)
		}
	}
}

// What is applied is taken by a server, gives the rights that it should, and its Pods meet
// the strictest of the Pod security standards.
func TestAServerTakesTheManifests(t *testing.T) {
	cluster := shared.Get(t)
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl(args...)
		if err != nil && !strings.HasPrefix(out, "no") { // auth can-i says no with a status
			t.Fatal(err)
		}
		return out
	}
	test := configurations(t)["full"]
	o := test.options
	o.Namespace = cluster.Namespace(t)
	kubectl("label", "namespace", o.Namespace, "pod-security.kubernetes.io/enforce=restricted")
	for _, namespace := range []string{"team-a", "team-b"} {
		// Their names are those of the file; they may be there of an earlier run.
		file := filepath.Join(t.TempDir(), "namespace.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		kubectl("apply", "-f", file)
	}
	files := manifests(t, test.config, o)
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("apply", "-k", dir)
	// The server fills in the template of a volume, which kubectl takes for a change each time.
	if again := kubectl("apply", "-k", dir); strings.Count(again, "unchanged") != strings.Count(again, "\n")-1 {
		t.Errorf("applied twice, something changes:\n%s", again)
	}

	account := "--as=system:serviceaccount:" + o.Namespace + ":" + defaultName
	for _, ask := range []struct{ question, want string }{
		{"watch pods -n team-a", "yes"},
		{"list deployments.apps -n team-b", "yes"},
		{"watch nodes", "yes"},
		{"create events.events.k8s.io -n team-a", "yes"},
		{"create tokenreviews.authentication.k8s.io", "yes"},
		{"watch pods", "no"},
		{"watch secrets -n team-a", "no"},
		{"delete pods -n team-a", "no"},
		{"watch pods -n kube-system", "no"},
	} {
		if got := strings.TrimSpace(kubectl(append([]string{"auth", "can-i", account}, strings.Fields(ask.question)...)...)); got != ask.want {
			t.Errorf("may the watch %s? %s, want %s", ask.question, got, ask.want)
		}
	}

	pod := podOf(t, decode(t, files), o.Namespace)
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pod.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("apply", "--dry-run=server", "-f", file)
}

func podOf(t *testing.T, objects []runtime.Object, namespace string) *corev1.Pod {
	t.Helper()
	for _, o := range objects {
		set, ok := o.(*appsv1.StatefulSet)
		if !ok {
			continue
		}
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}, Spec: set.Spec.Template.Spec}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "state"}) // as its controller adds it
		return pod
	}
	t.Fatal("there is no StatefulSet")
	return nil
}

// kubectl builds each base, and what comes out are the same objects.
func TestKustomizeBuildsTheBase(t *testing.T) {
	cluster := shared.Get(t)
	for name, test := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := manifests(t, test.config, test.options)
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			built, err := cluster.Kubectl("kustomize", dir)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := len(decode(t, map[string][]byte{"built.yaml": []byte(built)})), len(decode(t, files)); got != want {
				t.Errorf("%d objects, want %d, of %v", got, want, slices.Sorted(maps.Keys(files)))
			}
		})
	}
}
