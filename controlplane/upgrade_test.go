// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The archive holds etcd's files and the marker of a data directory, without its
// keys. The control plane of Kubernetes 1.36.3 with etcd 3.6.8 wrote it, and was
// stopped after kubectl had created the ConfigMap default/kept and, in the namespace
// before, the Deployment web. Each move to a new minor version needs a new archive,
// written by the version before it.
func TestADataDirectoryOfTheMinorVersionBeforeIsUpgraded(t *testing.T) {
	dir := t.TempDir()
	archive, err := filepath.Abs("testdata/datadir-1.36.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("unpacking: %v\n%s", err, out)
	}

	cp := startForTest(t, Options{DataDir: dir, DisableScheduler: true})
	c := client(t, cp.AdminConfig())
	kept, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || kept.Data["by"] != "1.36" {
		t.Errorf("the ConfigMap has the data %v, %v", kept.Data, err)
	}
	if _, err := c.AppsV1().Deployments("before").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	stopForTest(t, cp)

	data, err := os.ReadFile(filepath.Join(dir, markerFile))
	if err != nil {
		t.Fatal(err)
	}
	var written marker
	if err := json.Unmarshal(data, &written); err != nil || written != currentMarker() {
		t.Errorf("the marker is %s, %v: the older version would open what it cannot read", data, err)
	}
}
