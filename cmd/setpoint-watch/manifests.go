// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/watch/config"
)

func manifestsCommand(w *cli.World) *cobra.Command {
	var (
		file, out string
		o         config.Options
	)
	c := &cobra.Command{
		Use:   "manifests -f FILE -o DIR",
		Short: "Write what a cluster must have to run a configuration in it",
		Long: `Write what a cluster must have to run a configuration in it: the watch with probes and
metrics, the volume for its cursor, and the right to read what the configuration watches
and nothing else. It connects to nothing.

Secrets are not among it. The comment at the top of workload.yaml says which there must be.`,
		Example: `  setpoint watch manifests -f watch.yaml -n monitoring --image registry.example.com/setpoint-watch:v1 -o ./base
  kubectl apply -k ./base

  setpoint watch manifests -f watch.yaml -n monitoring --image registry.example.com/setpoint-watch:v1 -o - | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case file == "":
				return errors.New("manifests: want the configuration, -f FILE")
			case out == "":
				return errors.New("manifests: want a folder to write to, -o DIR, or -o - for standard output")
			case o.Image == "":
				return errors.New("manifests: want an image that has setpoint-watch, --image NAME")
			}
			conf, err := readConfig(file)
			if err != nil {
				return err
			}
			files, err := config.Manifests(conf, o)
			if err != nil {
				return err
			}
			if out == "-" {
				return printManifests(w.Stdout, files)
			}
			if err := writeManifests(out, files); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				fmt.Fprintln(w.Stderr, "wrote", filepath.Join(out, name))
			}
			return nil
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&file, "config", "f", "", "the YAML `file`")
	f.StringVarP(&out, "output", "o", "", "`folder` for the files of a kustomize base; - is standard output, for kubectl apply -f -")
	f.StringVar(&o.Image, "image", "", "`image` that has setpoint-watch")
	f.StringVarP(&o.Namespace, "namespace", "n", "default", "`namespace` that it runs in, which must be there")
	f.StringVar(&o.Name, "name", "setpoint-watch", "what everything is called")
	f.IntVar(&o.Replicas, "replicas", 1, "processes, of which one works")
	f.StringVar(&o.Storage, "storage", "1Gi", "`size` of the volume for the cursor and for files")
	f.StringVar(&o.StorageClass, "storage-class", "", "`name` of the volume's storage class (default: the cluster's)")
	f.StringSliceVar(&o.ClusterScoped, "cluster-scoped", nil, "watched `kinds` of your own that are not in namespaces, such as clusters.example.com")
	_ = c.MarkFlagDirname("output")
	cli.ExplainFlagErrors(c, nil)
	return c
}

// kustomization is the file that lists the others. It is no object of a cluster.
const kustomization = "kustomization.yaml"

// writeManifests writes the files into a folder, and makes the folder if it is not there. It does
// not overwrite files that this command has not made.
func writeManifests(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // it holds no secrets
		return err
	}
	old, err := os.ReadFile(filepath.Join(dir, kustomization))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ours := err == nil && bytes.Equal(firstLine(old), firstLine(files[kustomization]))
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		path := filepath.Join(dir, name)
		there, err := os.ReadFile(path)
		if err == nil && !ours && !bytes.Equal(there, files[name]) {
			return fmt.Errorf("%s is there, and was not made by this command; name another folder", path)
		}
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil { //nolint:gosec // it holds no secrets
			return err
		}
	}
	return nil
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// printManifests writes the objects of the files.
func printManifests(out io.Writer, files map[string][]byte) error {
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == kustomization {
			continue
		}
		if all.Len() > 0 {
			all.WriteString("---\n")
		}
		all.Write(files[name])
	}
	_, err := out.Write(all.Bytes())
	return err
}
