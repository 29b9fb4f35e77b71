// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// platform is an operating system and an architecture, as Go calls them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// folder is the platform in the name of a file.
func (p platform) folder() string { return p.os + "_" + p.arch }

var (
	// imagePlatforms are those of the image, and archivePlatforms those of the archives.
	imagePlatforms   = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	archivePlatforms = append(slices.Clone(imagePlatforms), platform{"darwin", "arm64"})
)

// commands are the programs of the image and of the archives, as packages of the root module.
var commands = []string{"./cmd/setpoint", "./cmd/setpoint-watch"}

// The control plane is the program that "setpoint up" starts. It is in the archives alone:
// an image runs controllers and watches in a cluster, which has a control plane already, and
// would be three times as large with it.
const (
	controlPlane       = "setpoint-controlplane"
	controlPlaneModule = "controlplane" // the folder of its module
)

// The generator is the program that "setpoint generate" becomes. It is in the archives alone:
// it reads the source of a controller, which no image has.
const (
	generator       = "setpoint-generate"
	generatorModule = "generate" // the folder of its module
)

// controlPlaneFor reports whether the archive of a platform has the control plane. It is
// built for Linux, where its tests run.
func (r *release) controlPlaneFor(p platform) bool {
	return r.controlPlaneFlags != "" && p.os == "linux"
}

// programs are the names of the programs in the archive of a platform.
func (r *release) programs(p platform) []string {
	var names []string
	for _, command := range commands {
		names = append(names, path.Base(command))
	}
	names = append(names, generator)
	if r.controlPlaneFor(p) {
		names = append(names, controlPlane)
	}
	return names
}

// binaries are the folders with the commands, by platform.
type binaries map[platform]string

// compile builds the commands for each platform, below the folder work.
func (r *release) compile(ctx context.Context, work string, platforms []platform) (binaries, error) {
	built := binaries{}
	for _, p := range platforms {
		if built[p] != "" {
			continue
		}
		fmt.Fprintf(r.out, "building for %s\n", p)
		built[p] = filepath.Join(work, p.folder())
		if err := compile(ctx, r.source, built[p], "-s -w -X main.version="+r.version, p, commands...); err != nil {
			return nil, fmt.Errorf("building for %s: %w", p, err)
		}
	}
	return built, nil
}

// compileGenerator adds the generator to the commands of platforms.
func (r *release) compileGenerator(ctx context.Context, built binaries, platforms []platform) error {
	for _, p := range platforms {
		fmt.Fprintf(r.out, "building the generator for %s\n", p)
		if err := compile(ctx, filepath.Join(r.source, generatorModule), built[p], "-s -w", p, "./cmd/"+generator); err != nil {
			return fmt.Errorf("building the generator for %s: %w", p, err)
		}
	}
	return nil
}

// compileControlPlane adds the control plane to the commands of each archive that has it.
func (r *release) compileControlPlane(ctx context.Context, built binaries) error {
	for _, p := range r.archives {
		if !r.controlPlaneFor(p) {
			continue
		}
		fmt.Fprintf(r.out, "building the control plane for %s: minutes for the first time\n", p)
		source := filepath.Join(r.source, controlPlaneModule)
		if err := compile(ctx, source, built[p], r.controlPlaneFlags, p, "./cmd/"+controlPlane); err != nil {
			return fmt.Errorf("building the control plane for %s: %w", p, err)
		}
	}
	return nil
}

// compile builds packages of the module in the folder source into the folder out, with flags
// for the linker. The bytes depend on the source, on the flags and on the version of Go, and
// on nothing else of the machine.
func compile(ctx context.Context, source, out, linker string, p platform, packages ...string) error {
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // it holds what is published
		return err
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	args := append([]string{"build", "-ldflags", linker, "-o", out + string(filepath.Separator)}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOWORK=off",
		// The defaults of the architectures, and no flags of the machine.
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFLAGS=-trimpath -buildvcs=false")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, said)
	}
	return nil
}

// goEnv returns a setting of the go command.
func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
