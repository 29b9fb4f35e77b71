// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// writeArchives writes an archive and a bill of materials for each platform, and returns
// their paths.
func (r *release) writeArchives(ctx context.Context, work string, built binaries) ([]string, error) {
	common, err := r.common(ctx, work, built)
	if err != nil {
		return nil, err
	}
	var written []string
	for _, p := range r.archives {
		base := filepath.Join(r.dir, r.archiveName(p))
		materials, err := r.materials(p, built[p])
		if err != nil {
			return nil, fmt.Errorf("listing what is in %s.tar.gz: %w", base, err)
		}
		t, err := r.archive(p, common, built[p], materials)
		if err != nil {
			return nil, fmt.Errorf("making %s.tar.gz: %w", base, err)
		}
		if err := create(base+".tar.gz", func(w io.Writer) error { return r.compress(w, t) }); err != nil {
			return nil, fmt.Errorf("writing %s.tar.gz: %w", base, err)
		}
		r.wrote(base + ".tar.gz")
		if err := create(base+".spdx.json", func(w io.Writer) error { return write(w, materials) }); err != nil {
			return nil, fmt.Errorf("writing %s.spdx.json: %w", base, err)
		}
		r.wrote(base + ".spdx.json")
		written = append(written, base+".tar.gz", base+".spdx.json")
	}
	return written, nil
}

// archiveName is the name of the archive of a platform, without its extension.
func (r *release) archiveName(p platform) string { return "setpoint_" + r.version + "_" + p.folder() }

// archive is all that is in the archive of a platform, below one folder with the name of the
// archive. Its programs are in the folder bin.
func (r *release) archive(p platform, common tree, bin string, materials []byte) (tree, error) {
	t, name := tree{}, r.archiveName(p)
	for file, content := range common {
		t[path.Join(name, file)] = content
	}
	for _, program := range r.programs(p) {
		if err := t.addProgram(path.Join(name, "bin", program), filepath.Join(bin, program)); err != nil {
			return nil, err
		}
	}
	t.add(path.Join(name, "sbom.spdx.json"), materials)
	return t, nil
}

// common are the files of an archive that are the same for each platform. Completions and
// man pages come from the commands themselves, which must run here.
func (r *release) common(ctx context.Context, work string, built binaries) (tree, error) {
	host := platform{runtime.GOOS, runtime.GOARCH}
	if built[host] == "" {
		more, err := r.compile(ctx, work, []platform{host})
		if err != nil {
			return nil, err
		}
		if err := r.compileGenerator(ctx, more, []platform{host}); err != nil {
			return nil, err
		}
		built[host] = more[host]
	}
	t := tree{}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		if err := t.addFile(name, filepath.Join(r.source, name)); err != nil {
			return nil, err
		}
	}
	if err := t.addFolder("deploy", filepath.Join(r.source, "deploy")); err != nil {
		return nil, err
	}
	if err := completions(ctx, t, filepath.Join(built[host], "setpoint")); err != nil {
		return nil, err
	}
	pages, err := r.manual(ctx, built[host])
	if err != nil {
		return nil, err
	}
	for name, page := range pages {
		t.add("share/man/man1/"+name, page)
	}
	return t, nil
}

// completions adds the completion scripts of a command, each where its shell looks for it.
func completions(ctx context.Context, t tree, command string) error {
	for shell, file := range map[string]string{
		"bash": "share/bash-completion/completions/setpoint",
		"zsh":  "share/zsh/site-functions/_setpoint",
		"fish": "share/fish/vendor_completions.d/setpoint.fish",
	} {
		script, err := output(ctx, command, "completion", shell)
		if err != nil {
			return err
		}
		t.add(file, script)
	}
	return nil
}

// compress writes a tree as a compressed archive. The header of gzip has neither a name nor
// a time.
func (r *release) compress(w io.Writer, t tree) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := t.write(z, r.created); err != nil {
		return err
	}
	return z.Close()
}

// writeSums writes the sums of files, as "sha256sum --check" reads them.
func (r *release) writeSums(files []string) error {
	var sums strings.Builder
	for _, file := range slices.Sorted(slices.Values(files)) {
		sum, err := sumOf(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, filepath.Base(file))
	}
	name := filepath.Join(r.dir, "setpoint_"+r.version+"_sha256sums.txt")
	if err := create(name, func(w io.Writer) error { return write(w, []byte(sums.String())) }); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	r.wrote(name)
	return nil
}

// sumOf is the SHA-256 sum of a file, in hexadecimal digits.
func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

func write(w io.Writer, data []byte) error {
	_, err := io.Copy(w, bytes.NewReader(data))
	return err
}
