// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// stockSide is the side of binaries that are built as Kubernetes and etcd have them.
const stockSide = "stock"

// runEnvtest is the case "envtest".
func runEnvtest(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("envtest", flag.ContinueOnError)
	flags.SetOutput(out)
	assets := flags.String("assets", "", "`directory` that \"setpoint assets\" prints")
	stock := flags.String("stock", filepath.Join("..", "bin", "stock"), "`directory` of kube-apiserver and etcd, such as \"make stock\" builds")
	turns := flags.Int("turns", 7, "turns of each side")
	verbose := flags.Bool("v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *assets == "" || *turns < 1 {
		return errors.New("measuring envtest: --assets is missing, or --turns is less than 1")
	}
	printMachine(out)
	fmt.Fprintf(out, "# envtest starts and stops a kube-apiserver and an etcd; %d turns, medians\n", *turns)
	dirs := map[string]string{setpointSide: *assets, stockSide: *stock}
	sides := []string{setpointSide, stockSide}
	found := map[string][]readings{}
	for turn := range *turns {
		for _, side := range sides {
			r, note, err := envtestTurn(ctx, dirs[side])
			if err != nil {
				return fmt.Errorf("measuring %s in %s: %w", side, dirs[side], err)
			}
			if note != "" {
				fmt.Fprintf(out, "# turn %d, %s: %s\n", turn+1, side, note)
			}
			if turn > 0 { // the first turn reads the files of the binaries
				found[side] = append(found[side], r)
			}
		}
		slices.Reverse(sides) // neither is always first
	}
	for _, l := range []struct {
		name, reading string
		aim           aim
	}{
		{"envtest-start", "start", aim{most: 1}},
		{"envtest-stop", "stop", aim{most: 1}},
		{"envtest-install-crds", "install", aim{}},
		{"envtest-uninstall-crds", "uninstall", aim{}},
	} {
		column := func(side string) (column []float64) {
			for _, r := range found[side] {
				column = append(column, r[l.reading])
			}
			return column
		}
		m := measure{name: l.name, unit: "s", ours: column(setpointSide), theirs: column(stockSide), aim: l.aim}
		m.print(out, *verbose)
	}
	fmt.Fprintf(out, "# load average %s\n", loadAverage())
	return nil
}

// envtestTurn starts the binaries of a directory, defines kinds and removes them, and stops the binaries. The
// note says which definition did not go.
func envtestTurn(ctx context.Context, dir string) (r readings, note string, err error) {
	environment := &envtest.Environment{BinaryAssetsDirectory: dir, ControlPlaneStartTimeout: time.Minute, ControlPlaneStopTimeout: time.Minute}
	existing := false
	environment.UseExistingCluster = &existing
	r = readings{}
	var config *rest.Config
	steps := []struct {
		name string
		run  func() error
	}{
		{"start", func() (err error) { config, err = environment.Start(); return err }},
		{"install", func() error {
			_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: probeKinds()})
			return err
		}},
		{"uninstall", func() (err error) { note, err = uninstall(ctx, config); return err }},
		{"stop", environment.Stop},
	}
	for _, s := range steps {
		began := time.Now()
		if err := s.run(); err != nil {
			if s.name != "stop" {
				err = errors.Join(err, environment.Stop())
			}
			return nil, "", fmt.Errorf("%s: %w", s.name, err)
		}
		r[s.name] = time.Since(began).Seconds()
	}
	return r, note, nil
}

// patienceOfRemoval is how long definitions may take to go. The tests of envtest wait 20 seconds.
const patienceOfRemoval = time.Minute

// uninstall removes the definitions, and waits until they are gone. The note has those that stay.
func uninstall(ctx context.Context, config *rest.Config) (note string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patienceOfRemoval)
	defer cancel()
	all := probeKinds()
	if err := envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: all}); err != nil {
		return "", err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return "", err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return "", err
	}
	err = poll(ctx, "the end of the definitions", func() (bool, error) {
		note = ""
		for _, d := range all {
			is := d.DeepCopy()
			err := c.Get(ctx, client.ObjectKeyFromObject(d), is)
			if err == nil {
				note += fmt.Sprintf("%s stays, with the conditions %+v; ", d.Name, is.Status.Conditions)
			} else if !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return note == "", nil
	})
	if errors.Is(err, context.DeadlineExceeded) && note != "" {
		return note, nil
	}
	return note, err
}

// probeKinds are five definitions, as many as the tests of envtest have.
func probeKinds() (all []*apiextensionsv1.CustomResourceDefinition) {
	for _, name := range []string{"foo", "baz", "captain", "firstmate", "driver"} {
		all = append(all, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: name + "s.bench.example.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "bench.example.com", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: name + "s", Kind: "Kind" + name, ListKind: "Kind" + name + "List", Singular: name},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
				}},
			},
		})
	}
	return all
}
