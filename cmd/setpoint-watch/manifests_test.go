// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/watch/config"
)

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "watch.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: "+config.Version+"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestManifestsAreWrittenIntoAFolder(t *testing.T) {
	file, dir := written(t, ""), filepath.Join(t.TempDir(), "new", "base")
	w, said := testWorld(nil)
	for range 2 { // what it has made itself it makes anew
		if status := run(t.Context(), w, []string{"manifests", "-f", file, "-n", "monitoring", "--image", "example.com/watch:v1", "-o", dir}); status != 0 {
			t.Fatal(said)
		}
	}
	for _, name := range []string{kustomization, "configuration.yaml", "workload.yaml", "rbac.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil || !strings.Contains(said.String(), "wrote "+filepath.Join(dir, name)+"\n") {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}

func TestManifestsDoNotWriteOverWhatIsSomebodyElses(t *testing.T) {
	file, dir := written(t, ""), t.TempDir()
	theirs := filepath.Join(dir, "workload.yaml")
	if err := os.WriteFile(theirs, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, said := testWorld(nil)
	status := run(t.Context(), w, []string{"manifests", "-f", file, "--image", "example.com/watch:v1", "-o", dir})
	if status != 1 || !strings.Contains(said.String(), theirs+" is there, and was not made by this command") {
		t.Errorf("status %d: %s", status, said)
	}
	if text, _ := os.ReadFile(theirs); string(text) != "mine" {
		t.Errorf("it is %q now", text)
	}
	if all, _ := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("%d files", len(all))
	}
}

func TestManifestsOnStandardOutputHaveTheConfiguration(t *testing.T) {
	w, said := testWorld(nil)
	if status := run(t.Context(), w, []string{"manifests", "-f", written(t, "# mine\n"), "--image", "example.com/watch:v1", "-o", "-"}); status != 0 {
		t.Fatal(said)
	}
	for _, want := range []string{"kind: ConfigMap\n", "# mine", "kind: ServiceAccount\n", "image: example.com/watch:v1\n"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if strings.Contains(said.String(), "Kustomization") {
		t.Error("kubectl apply -f would be given a Kustomization")
	}
}

func TestManifestsSayWhatTheyNeed(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "want the configuration, -f FILE"},
		{[]string{"-f", "x"}, "want a folder to write to, -o DIR"},
		{[]string{"-f", "x", "-o", "-"}, "want an image that has setpoint-watch, --image NAME"},
		{[]string{"--imge", "x"}, "there is no flag --imge; did you mean --image?"},
	} {
		w, said := testWorld(nil)
		if status := run(t.Context(), w, append([]string{"manifests"}, test.args...)); status != 1 || !strings.Contains(said.String(), test.want) {
			t.Errorf("%q: status %d: %s", test.args, status, said)
		}
	}
}
