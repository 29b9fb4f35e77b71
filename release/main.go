// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run runs the command line, and writes a line to out for each step.
func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	source := flags.String("source", "..", "`folder` of the root module")
	dir := flags.String("out", "../bin/release", "`folder` to write to")
	name := flags.String("name", "localhost/setpoint", "`name` of the image, without a tag")
	version := flags.String("version", "", "version of the commands, and tag of the image")
	revision := flags.String("revision", "", "commit that is built")
	seconds := flags.Int64("time", 0, "time of all files, in `seconds` since 1970")
	controlPlaneFlags := flags.String("controlplane", "", "`flags` of the linker for setpoint-controlplane, which stamp its versions; the archives have it if they are given")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := &release{
		about:  about{name: *name, version: *version, revision: *revision, created: time.Unix(*seconds, 0).UTC()},
		source: *source, dir: *dir, out: out,
		images: imagePlatforms, archives: archivePlatforms, controlPlaneFlags: *controlPlaneFlags,
	}
	if err := r.validate(); err != nil {
		return err
	}
	switch what := flags.Args(); {
	case len(what) == 1 && what[0] == "image":
		return r.build(ctx, false)
	case len(what) == 1 && what[0] == "all":
		return r.build(ctx, true)
	default:
		return fmt.Errorf("%q: want one argument, image or all", what)
	}
}

// about describes an artifact.
type about struct {
	name     string // of the image, without a tag
	version  string
	revision string // the commit
	created  time.Time
}

// release is one run of the program.
type release struct {
	about
	source, dir      string
	out              io.Writer
	images, archives []platform
	// controlPlaneFlags are the flags of the linker for the control plane. Without them,
	// no archive has it.
	controlPlaneFlags string
}

func (r *release) validate() error {
	switch {
	case r.version == "" || r.version != filepath.Base(r.version):
		return fmt.Errorf("-version=%s: want the version, such as v0.3.0", r.version)
	case r.created.Unix() <= 0:
		return fmt.Errorf("-time=%d: want the seconds of SOURCE_DATE_EPOCH or of the commit: git log -1 --format=%%ct", r.created.Unix())
	}
	return nil
}

// build builds the image, and the archives if they are wanted too.
func (r *release) build(ctx context.Context, archives bool) (err error) {
	work, err := os.MkdirTemp("", "setpoint-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := os.MkdirAll(r.dir, 0o755); err != nil { //nolint:gosec // it holds what is published
		return err
	}
	wanted := r.images
	if archives {
		wanted = slices.Concat(r.images, r.archives)
	}
	built, err := r.compile(ctx, work, wanted)
	if err != nil {
		return err
	}
	image, err := r.writeImage(ctx, built)
	if err != nil || !archives {
		return err
	}
	if err := r.compileGenerator(ctx, built, r.archives); err != nil {
		return err
	}
	if err := r.compileControlPlane(ctx, built); err != nil {
		return err
	}
	files, err := r.writeArchives(ctx, work, built)
	if err != nil {
		return err
	}
	return r.writeSums(append(files, image))
}

// wrote prints which file was written.
func (r *release) wrote(path string) { fmt.Fprintln(r.out, "wrote", path) }
