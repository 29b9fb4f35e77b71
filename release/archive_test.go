// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// small releases the module in testdata, whose commands build within a second. The module
// is a copy in a folder of the test.
func small(t *testing.T) *release {
	t.Helper()
	r := testRelease(t)
	r.source, r.controlPlaneFlags = t.TempDir(), "-s -w -X main.kubernetes=v1.2.3"
	if err := os.CopyFS(r.source, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(imagePlatforms, host) {
		t.Skipf("there is no image for %s", host)
	}
	if err := r.build(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	return r
}

// written are the files of a release, by their names.
func written(t *testing.T, r *release) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(r.dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestTwoReleasesFromTwoFoldersAreTheSameBytes(t *testing.T) {
	t.Parallel()
	first, second := written(t, small(t)), written(t, small(t))
	if len(first) != 4 || len(second) != 4 {
		t.Errorf("the releases have %d and %d files, want 4: an image, an archive, its materials and sums", len(first), len(second))
	}
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestAnArchiveHoldsCommandsCompletionsPagesAndManifests(t *testing.T) {
	t.Parallel()
	r := small(t)
	name := "setpoint_v1.2.3_" + host.folder()
	files := written(t, r)
	z, err := gzip.NewReader(bytes.NewReader(files[name+".tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	got := unpack(t, dir, z)
	want := []string{
		"LICENSE", "NOTICE", "bin/setpoint", "bin/setpoint-controlplane", "bin/setpoint-generate", "bin/setpoint-watch", "deploy/pod.yaml", "sbom.spdx.json",
		"share/bash-completion/completions/setpoint", "share/fish/vendor_completions.d/setpoint.fish",
		"share/man/man1/setpoint-generate.1", "share/man/man1/setpoint-watch.1", "share/man/man1/setpoint.1", "share/zsh/site-functions/_setpoint",
	}
	for i := range want {
		want[i] = name + "/" + want[i]
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the archive has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for file, text := range map[string]string{
		"share/zsh/site-functions/_setpoint": "script of v1.2.3 for zsh", "share/man/man1/setpoint-watch.1": "Watch with v1.2.3.",
	} {
		if data, err := os.ReadFile(filepath.Join(dir, name, file)); err != nil || !strings.Contains(string(data), text) {
			t.Errorf("%s: %v: %q, want %q in it", file, err, data, text)
		}
	}
	if out, err := output(t.Context(), filepath.Join(dir, name, "bin/setpoint"), "completion", "bash"); err != nil || string(out) != "script of v1.2.3 for bash\n" {
		t.Errorf("the command says %q, %v", out, err)
	}
	if out, err := output(t.Context(), filepath.Join(dir, name, "bin/setpoint-controlplane")); err != nil || string(out) != "Kubernetes v1.2.3\n" {
		t.Errorf("the control plane says %q, %v", out, err)
	}

	for line := range strings.Lines(string(files["setpoint_v1.2.3_sha256sums.txt"])) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if data, ok := files[file]; !ok || sum != fmt.Sprintf("%x", sha256.Sum256(data)) {
			t.Errorf("the sums have %q, which is not the sum of a file beside them", line)
		}
		delete(files, file)
	}
	if len(files) != 1 {
		t.Errorf("the sums lack files: %d are left", len(files)-1)
	}
}

func TestTheMaterialsNameEveryModuleOfTheCommands(t *testing.T) {
	t.Parallel()
	r, commands := testRelease(t), built(t)
	text, err := r.materials(host, commands[host])
	if err != nil {
		t.Fatal(err)
	}
	var d spdx
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	byName := map[string]spdxPackage{}
	byID := map[string]bool{spdxDocument: true}
	for _, p := range d.Packages {
		byName[p.Name] = p
		if byID[p.ID] {
			t.Errorf("two packages are %s", p.ID)
		}
		byID[p.ID] = true
	}
	f, err := os.Open(filepath.Join(commands[host], "setpoint"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		t.Fatal(err)
	}
	if p := byName["setpoint"]; len(p.Checksums) != 1 || p.Checksums[0].Value != fmt.Sprintf("%x", sum.Sum(nil)) || p.Version != "v1.2.3" {
		t.Errorf("the command is %+v", p)
	}
	const rotating = "gopkg.in/natefinch/lumberjack.v2"
	for _, name := range []string{"stdlib", "k8s.io/api", rotating, "github.com/spf13/cobra"} {
		p, ok := byName[name]
		if !ok || p.Version == "" || len(p.Refs) != 1 || p.Refs[0].Locator != "pkg:golang/"+name+"@"+p.Version {
			t.Errorf("%s is %+v", name, p)
		}
	}
	dependsOnIt := map[string]bool{}
	for _, relation := range d.Relationships {
		if !byID[relation.From] || !byID[relation.To] {
			t.Errorf("%+v is between packages that the document lacks", relation)
		}
		if relation.To == byName[rotating].ID {
			dependsOnIt[relation.From] = true
		}
	}
	// Files that are rotated are a sink of the watch.
	if len(dependsOnIt) != 1 || !dependsOnIt["SPDXRef-command-setpoint-watch"] {
		t.Errorf("%v depend on %s, want setpoint-watch alone", dependsOnIt, rotating)
	}
}

func TestOnlyArchivesForLinuxHaveTheControlPlane(t *testing.T) {
	t.Parallel()
	without := []string{"setpoint", "setpoint-watch", "setpoint-generate"}
	with := append(slices.Clone(without), "setpoint-controlplane")
	for _, test := range []struct {
		platform platform
		flags    string
		want     []string
	}{
		{platform{"linux", "amd64"}, "-s", with},
		{platform{"linux", "arm64"}, "-s", with},
		{platform{"darwin", "arm64"}, "-s", without},
		{platform{"linux", "amd64"}, "", without},
	} {
		r := testRelease(t)
		r.controlPlaneFlags = test.flags
		if got := r.programs(test.platform); !slices.Equal(got, test.want) {
			t.Errorf("with flags %q, the archive for %s has %q, want %q", test.flags, test.platform, got, test.want)
		}
	}
}

// An archive with the programs that make has built is unpacked, and runs, by the commands of the
// document. Nothing but its folder says where they are.
func TestUpRunsFromAnArchiveAlone(t *testing.T) {
	t.Parallel()
	if host.os != "linux" {
		t.Skipf("the archive for %s has no control plane", host)
	}
	r := testRelease(t)
	r.controlPlaneFlags = "-s -w"
	files, err := r.archive(host, tree{}, built(t)[host], nil)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := filepath.Abs(kubectlProgram())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range documenttest.Blocks(t) {
		dir := t.TempDir()
		file := filepath.Join(dir, r.archiveName(host)+".tar.gz")
		if err := create(file, func(w io.Writer) error {
			z := gzip.NewWriter(w)
			return errors.Join(files.write(z, r.created), z.Close())
		}); err != nil {
			t.Fatal(err)
		}
		commands := strings.ReplaceAll(b.Text, "setpoint_v0.3.0_linux_amd64", r.archiveName(host))
		commands = strings.TrimSpace(commands) + " --nodes 1 -- " + kubectl + " wait --for=condition=Ready --timeout=60s node/node-0"
		up := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
		up.Dir = dir
		up.Env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "PATH=" + systemPath}
		up.Cancel = func() error { return up.Process.Signal(os.Interrupt) }
		up.WaitDelay = time.Minute
		said, err := up.CombinedOutput()
		if want := "node/node-0 condition met"; err != nil || !strings.Contains(string(said), want) {
			t.Errorf("%s: %s: %v\n%s\nwant %q in it", b, commands, err, said, want)
		}
	}
}

// systemPath has tar and gzip, and no program of ours.
const systemPath = "/usr/local/bin:/usr/bin:/bin"
