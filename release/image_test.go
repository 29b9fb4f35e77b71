// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// host is the platform of this machine, the only one that tests use.
var host = platform{runtime.GOOS, runtime.GOARCH}

// built are the commands that make has built for this machine.
func built(t *testing.T) binaries {
	t.Helper()
	setpoint := os.Getenv("SETPOINT_BIN")
	if setpoint == "" {
		setpoint = filepath.Join("..", "bin", "setpoint")
	}
	if _, err := os.Stat(setpoint); err != nil { //nolint:gosec // the path is from the Makefile
		t.Fatalf("make build makes the commands that this test needs: %v", err)
	}
	return binaries{host: filepath.Dir(setpoint)}
}

// testRelease is for this machine alone, and writes into a folder of the test.
func testRelease(t *testing.T) *release {
	t.Helper()
	return &release{
		about:  about{name: "registry.example.com/setpoint", version: "v1.2.3", revision: "0123abcd", created: time.Unix(1_700_000_000, 0).UTC()},
		source: "..", dir: t.TempDir(), out: io.Discard, images: []platform{host}, archives: []platform{host},
	}
}

// imageOf writes the image of commands and returns its file.
func imageOf(t *testing.T, commands binaries) string {
	t.Helper()
	file, err := testRelease(t).writeImage(t.Context(), commands)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// opened reads the image of a file for this machine. All digests and sizes are those of the
// contents.
func opened(t *testing.T, file string) v1.Image {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	unpack(t, dir, f)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	entries, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries.Manifests) != 1 || entries.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" ||
		entries.Manifests[0].Annotations["io.containerd.image.name"] != "registry.example.com/setpoint:v1.2.3" {
		t.Errorf("index.json has %+v, want one index with the tag and the name", entries.Manifests)
	}
	platforms, err := index.ImageIndex(entries.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := platforms.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests.Manifests {
		if m.Platform.OS == host.os && m.Platform.Architecture == host.arch {
			image, err := platforms.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("the index has %+v, want an image for %s", manifests.Manifests, host)
	return nil
}

// unpack unpacks a tar archive into a folder, with the permissions of the archive, and
// returns the names of the files in it.
func unpack(t *testing.T, dir string, from io.Reader) []string {
	t.Helper()
	var names []string
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o700)
		} else {
			names = append(names, header.Name)
			var data []byte
			if data, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(to, data, 0o600)
			}
		}
		if err == nil {
			err = os.Chmod(to, header.FileInfo().Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// rootOf unpacks the files of an image into a folder of the test.
func rootOf(t *testing.T, image v1.Image) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	return dir, unpack(t, dir, files)
}

func TestTheImage(t *testing.T) {
	t.Parallel()
	if !slices.Contains(imagePlatforms, host) {
		t.Skipf("there is no image for %s", host)
	}
	image := opened(t, imageOf(t, built(t)))
	root, names := rootOf(t, image)
	t.Run("holds the commands and what they need, and nothing else", func(t *testing.T) { holdsTheCommands(t, root, names) })
	t.Run("says what it is, and runs as a user without rights", func(t *testing.T) { saysWhatItIs(t, image) })
	t.Run("runs the manager with the manifests", func(t *testing.T) { runsTheManager(t, root) })
}

func holdsTheCommands(t *testing.T, root string, names []string) {
	slices.Sort(names)
	// There is no shell, no package manager and no library.
	if want := []string{
		"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/local/bin/setpoint", "usr/local/bin/setpoint-watch",
		"usr/share/doc/setpoint/LICENSE", "usr/share/doc/setpoint/NOTICE", "usr/share/zoneinfo.zip",
	}; !slices.Equal(names, want) {
		t.Errorf("the files are\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}

	for _, command := range []string{"setpoint", "setpoint-watch"} {
		file := filepath.Join(root, programs, command)
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o755 {
			t.Errorf("%s has the mode %s", command, info.Mode())
		}
		program, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, segment := range program.Progs {
			if segment.Type == elf.PT_INTERP {
				t.Errorf("%s needs a dynamic linker", command)
			}
		}
		_ = program.Close()
	}
	if info, err := os.Stat(filepath.Join(root, "tmp")); err != nil || info.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("/tmp: %v, %v; want a folder for all users", info, err)
	}

	pem, err := os.ReadFile(filepath.Join(root, authorities))
	if err != nil {
		t.Fatal(err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) || bytes.Count(pem, []byte("BEGIN CERTIFICATE")) < 50 {
		t.Errorf("the certificates are %d bytes with %d certificates", len(pem), bytes.Count(pem, []byte("BEGIN CERTIFICATE")))
	}
	zoneinfo, err := os.ReadFile(filepath.Join(root, zones))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(zoneinfo, []byte("Europe/Berlin")) {
		t.Error("the time zones lack Europe/Berlin")
	}
}

func saysWhatItIs(t *testing.T, image v1.Image) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/setpoint"}) || len(c.Cmd) > 0 {
		t.Errorf("it runs %q %q as %q", c.Entrypoint, c.Cmd, c.User)
	}
	if !slices.Contains(c.Env, "PATH=/usr/local/bin") {
		t.Errorf("its environment is %q, want a PATH with the commands: manifests name them without a folder", c.Env)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"org.opencontainers.image.version": "v1.2.3", "org.opencontainers.image.revision": "0123abcd",
		"org.opencontainers.image.created": "2023-11-14T22:13:20Z", "org.opencontainers.image.licenses": "Apache-2.0",
	}
	for what, labels := range map[string]map[string]string{"labels": c.Labels, "annotations": manifest.Annotations} {
		for key, value := range want {
			if labels[key] != value {
				t.Errorf("%s: %s is %q, want %q", what, key, labels[key], value)
			}
		}
	}
	if config.OS != host.os || config.Architecture != host.arch || config.Created.Unix() != 1_700_000_000 {
		t.Errorf("it is of %s for %s/%s", config.Created, config.OS, config.Architecture)
	}
}

func TestTwoImagesOfOneCommitAreTheSameBytes(t *testing.T) {
	small := binaries{host: t.TempDir()}
	for _, command := range commands {
		if err := os.WriteFile(filepath.Join(small[host], filepath.Base(command)), []byte(command), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var images [2][]byte
	for i := range images {
		var err error
		if images[i], err = os.ReadFile(imageOf(t, small)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(images[0], images[1]) {
		t.Error("two images of the same files differ")
	}
}

func TestATreeIsWrittenInOrderWithNothingOfTheMachine(t *testing.T) {
	want := tree{"b/c/file": {mode: 0o644, data: []byte("1")}, "a": {mode: 0o755, data: []byte("2")}}
	var text bytes.Buffer
	if err := want.write(&text, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(&text); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if header.Uid != 0 || header.Gid != 0 || header.Uname+header.Gname != "" || header.ModTime.Unix() != 1 {
			t.Errorf("%s is of %d:%d %q %q at %s", header.Name, header.Uid, header.Gid, header.Uname, header.Gname, header.ModTime)
		}
	}
	if all := []string{"a", "b/", "b/c/", "b/c/file"}; !slices.Equal(names, all) {
		t.Errorf("the archive has %q, want %q", names, all)
	}
	if keys := slices.Sorted(maps.Keys(want)); !slices.Equal(keys, []string{"a", "b/c/file"}) {
		t.Errorf("the tree became %q", keys)
	}
}
