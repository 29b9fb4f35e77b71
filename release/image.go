// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user is the one of the image, and its group: "nonroot" of most images without a
	// shell, which the manifests of "setpoint watch manifests" name too.
	user = "65532"
	// programs is the folder of the commands in the image, which is in its PATH.
	programs = "usr/local/bin"
	// authorities is where Go looks for certificates on Linux.
	// Source: crypto/x509, certFiles.
	authorities = "etc/ssl/certs/ca-certificates.crt"
	// zones are the time zones, which Go finds by the variable ZONEINFO.
	zones = "usr/share/zoneinfo.zip"
)

// writeImage writes the image as one file, and returns its path.
func (r *release) writeImage(ctx context.Context, built binaries) (string, error) {
	system, err := r.system(ctx)
	if err != nil {
		return "", fmt.Errorf("making the image: %w", err)
	}
	index, err := r.index(system, built)
	if err != nil {
		return "", fmt.Errorf("making the image: %w", err)
	}
	file := filepath.Join(r.dir, "setpoint_"+r.version+"_image.tar")
	if err := r.writeLayout(file, index); err != nil {
		return "", fmt.Errorf("writing %s: %w", file, err)
	}
	r.wrote(file)
	return file, nil
}

// system are the files of the image that are the same for each platform.
func (r *release) system(ctx context.Context) (tree, error) {
	roots, err := certificates()
	if err != nil {
		return nil, err
	}
	goroot, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return nil, err
	}
	t := tree{"tmp": {mode: fs.ModeDir | fs.ModeSticky | 0o777}}
	t.add(authorities, roots)
	t.add("etc/passwd", []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:"+user+":"+user+":nonroot:/:/sbin/nologin\n"))
	t.add("etc/group", []byte("root:x:0:\nnonroot:x:"+user+":\n"))
	if err := t.addFile(zones, filepath.Join(goroot, "lib", "time", "zoneinfo.zip")); err != nil {
		return nil, err
	}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		if err := t.addFile("usr/share/doc/setpoint/"+name, filepath.Join(r.source, name)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// index is the image for all platforms that it is built for.
func (r *release) index(system tree, built binaries) (v1.ImageIndex, error) {
	base, err := layer(system, r.created)
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.images {
		image, err := r.image(p, base, built[p])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: p.oci()}})
	}
	annotated, ok := mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotating an index made a %T", annotated)
	}
	return annotated, nil
}

// image is that of one platform: a layer that rarely changes, and one with the commands.
func (r *release) image(p platform, base v1.Layer, bin string) (v1.Image, error) {
	t := tree{}
	for _, command := range commands {
		name := path.Base(command)
		if err := t.addProgram(path.Join(programs, name), filepath.Join(bin, name)); err != nil {
			return nil, err
		}
	}
	top, err := layer(t, r.created)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := func(what string) v1.History {
		return v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "setpoint release", Comment: what}
	}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, History: history("certificates, time zones, the user")},
		mutate.Addendum{Layer: top, History: history("the commands")})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = p.os, p.arch, p.oci().Variant
	config.Created = v1.Time{Time: r.created}
	config.Config = v1.Config{
		User:       user + ":" + user,
		Entrypoint: []string{"/" + programs + "/setpoint"},
		Env:        []string{"PATH=/" + programs, "ZONEINFO=/" + zones},
		WorkingDir: "/",
		Labels:     r.labels(),
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, r.labels()).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("annotating an image made a %T", annotated)
	}
	return annotated, nil
}

// oci is the platform as image indexes name it: arm64 has a variant there.
// Source: github.com/containerd/platforms, Normalize.
func (p platform) oci() *v1.Platform {
	o := &v1.Platform{OS: p.os, Architecture: p.arch}
	if p.arch == "arm64" {
		o.Variant = "v8"
	}
	return o
}

// labels describe the image. Source: OCI image specification, annotations.md.
func (r *release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "setpoint",
		"org.opencontainers.image.description": "Kubernetes controllers, and what changes in a cluster",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.revision,
		"org.opencontainers.image.created":     r.created.Format(time.RFC3339),
		"org.opencontainers.image.source":      "https://github.com/setpoint-io/setpoint",
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// layer makes a compressed layer of a tree.
func layer(t tree, at time.Time) (v1.Layer, error) {
	var text bytes.Buffer
	if err := t.write(&text, at); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// writeLayout writes an index as an OCI image layout in a tar archive. The annotations of its
// only entry are the tag, and the whole name for containerd and Docker.
func (r *release) writeLayout(to string, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp("", "setpoint-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	where, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := where.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version,
		"io.containerd.image.name":          r.name + ":" + r.version,
	})); err != nil {
		return err
	}
	t := tree{}
	if err := t.addFolder("", dir); err != nil {
		return err
	}
	return create(to, func(w io.Writer) error { return t.write(w, r.created) })
}

// create writes a file that every user may read. A file that could not be written whole
// does not stay.
func create(name string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644) //nolint:gosec // it is published
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
		if err != nil {
			_ = os.Remove(name)
		}
	}()
	return write(f)
}
