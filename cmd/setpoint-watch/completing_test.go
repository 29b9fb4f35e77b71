// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/completion"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// discoverable starts a server with some kinds and namespaces, and returns the kubeconfig
// for it.
func discoverable(t *testing.T) string {
	t.Helper()
	server := fakeapi.New(
		object.Resource{Version: "v1", Plural: "podtemplates", Kind: "PodTemplate", Namespaced: true},
		object.Resource{Version: "v1", Plural: "bindings", Kind: "Binding", Namespaced: true},
		object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true},
	).Listen()
	t.Cleanup(server.Close)
	namespaces := server.Serve(object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"})
	for _, name := range []string{"team-b", "team-a"} {
		if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	pods := server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	for _, key := range []object.Key{{Namespace: "team-a", Name: "web-1"}, {Namespace: "team-b", Name: "web-1"}, {Namespace: "team-b", Name: "api-1"}} {
		if err := pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: here, clusters: [{name: c, cluster: {server: %q}}],
contexts: [{name: here, context: {cluster: c}}, {name: there, context: {cluster: c}}]}`, server.Config().Host)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCompletion(t *testing.T) {
	kubeconfig := discoverable(t)
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"a kind", []string{"po"}, "pods\tPod (po)\npodtemplates\tPodTemplate\n:4\n"},
		{"a kind of a group, in any case", []string{"DEP"}, "deployments.apps\tDeployment (deploy)\n:4\n"},
		{"what cannot be watched is none", []string{"bind"}, ":4\n"},
		{"the next one of a list", []string{"deployments.apps,pod"}, "deployments.apps,pods\tPod (po)\ndeployments.apps,podtemplates\tPodTemplate\n:4\n"},
		{"none twice", []string{"pods,pod"}, "pods,podtemplates\tPodTemplate\n:4\n"},
		{"an object, of all namespaces, each name once", []string{"po", ""}, "api-1\nweb-1\n:4\n"},
		{"an object of a namespace", []string{"-n", "team-a", "Pod", ""}, "web-1\n:4\n"},
		{"an object that has begun", []string{"pods", "w"}, "web-1\n:4\n"},
		{"an object that is none yet", []string{"pods", "api-1", ""}, "web-1\n:4\n"},
		{"an object of one of two kinds", []string{"po,ns", "t"}, "team-a\nteam-b\n:4\n"},
		{"an object without a namespace", []string{"-n", "team-a", "ns", ""}, "team-a\nteam-b\n:4\n"},
		{"an object behind a slash", []string{"po/w"}, "po/web-1\n:4\n"},
		{"an object behind a slash and a comma", []string{"ns/team-a,po/"}, "ns/team-a,po/api-1\nns/team-a,po/web-1\n:4\n"},
		{"a kind after an object", []string{"po/web-1", "podt"}, "podtemplates/\tPodTemplate\n:6\n"},
		{"an object after an object", []string{"po/web-1", "ns/team-b"}, "ns/team-b\n:4\n"},
		{"an object of no kind", []string{"gadgets", ""}, ":4\n"},
		{"nothing beside all", []string{"--all", ""}, ":4\n"},
		{"a namespace", []string{"pods", "-n", ""}, "team-a\nteam-b\n:4\n"},
		{"a namespace after the sign", []string{"--namespace=team-b,"}, "team-b,team-a\n:4\n"},
		{"a namespace to leave out", []string{"--exclude-namespace", "team-b"}, "team-b\n:4\n"},
		{"a context", []string{"--context", ""}, "here\nthere\n:4\n"},
		{"a sort of change", []string{"--show", "status,heart"}, "status,heartbeats\tsomebody says that he is alive: leases, times of conditions\n:4\n"},
		{"a form", []string{"-o", ""}, "text\ta line each\ndiff\tfield by field\njson\ta line each, for programs\nyaml\n:4\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, said := testWorld(nil)
			run(t.Context(), w, append([]string{cobra.ShellCompRequestCmd, "-k", kubeconfig}, test.args...))
			if !strings.HasPrefix(said.String(), test.want) {
				t.Errorf("%q, want %q", said, test.want)
			}
		})
	}
}

func TestCompletionSaysWhatItCannotFindOut(t *testing.T) {
	w, said := testWorld(nil)
	run(t.Context(), w, []string{cobra.ShellCompRequestCmd, "-k", filepath.Join(t.TempDir(), "none"), "po"})
	if !strings.Contains(said.String(), "_activeHelp_ kubeconfig ") || !strings.Contains(said.String(), "none does not exist\n:4\n") {
		t.Errorf("%q", said)
	}
}

// A user may be allowed to watch an object, and not to list its kind.
func TestCompletionOfObjectsIsSilentOnErrors(t *testing.T) {
	w, said := testWorld(nil)
	run(t.Context(), w, []string{cobra.ShellCompRequestCmd, "-k", filepath.Join(t.TempDir(), "none"), "pods", ""})
	if !strings.HasPrefix(said.String(), ":4\n") {
		t.Errorf("%q", said)
	}
}

func TestCompletionWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cobra.Command{}
		c.SetContext(t.Context())
		release := make(chan struct{})
		began := time.Now()
		found, _ := completion.Listed(func(context.Context) ([]string, error) { <-release; return []string{"pods"}, nil })(c, nil, "")
		close(release)
		if took := time.Since(began); took != completion.Time || len(found) != 1 || !strings.Contains(found[0], "did not answer in time") {
			t.Errorf("%q after %s", found, took)
		}
	})
}
