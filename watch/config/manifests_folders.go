// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// secretDir is a folder that a Secret is mounted at.
type secretDir struct {
	Dir, Name string   // of the Secret
	Keys      []string // that are read, in their order
}

// systemDirs are folders of an image that must not be covered by a volume.
var systemDirs = []string{"/", "/bin", "/dev", "/etc", "/etc/ssl", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/usr/bin", "/usr/local/bin", "/var", "/var/run"}

// folders finds which folders of the container must be volumes.
func (p *plan) folders() []error {
	c := claims{used: map[string]string{configDir: "the configuration", "/tmp": "temporary files"}}
	p.stateFolders(&c)
	p.secretFolders(&c)
	return c.errs
}

// stateFolders finds the folders of the cursor and of files, which are kept.
func (p *plan) stateFolders(c *claims) {
	var all []string
	keep := func(key, file string) {
		if dir, ok := c.claim(key, file, forState); ok {
			all = append(all, dir)
		}
	}
	if p.config.Cursor != "" {
		keep("cursor", p.config.Cursor)
	}
	for i, s := range p.config.Sinks {
		if s.File != nil {
			keep(join(index("sinks", i), "file.path"), s.File.Path)
		}
	}
	for _, dir := range sorted(all) {
		// A folder in another one is in its volume.
		if !slices.ContainsFunc(p.State, func(outer string) bool { return within(dir, outer) }) {
			p.State = append(p.State, dir)
		}
	}
}

// secretFolders finds the folders that Secrets are mounted at, and the variables that come from
// a Secret.
func (p *plan) secretFolders(c *claims) {
	keys := map[string][]string{} // by folder
	for _, need := range p.config.reads {
		if need.Env != "" {
			if len(validation.IsEnvVarName(need.Env)) > 0 || len(validation.IsConfigMapKey(need.Env)) > 0 {
				c.wrong("%q cannot be the name of an environment variable of a container", need.Env)
			}
			p.Env = append(p.Env, need.Env)
			continue
		}
		key, secret := path.Base(need.File), path.Base(path.Dir(need.File))
		dir, ok := c.claim(need.path, need.File, forSecrets)
		switch {
		case !ok:
		case len(validation.IsDNS1123Subdomain(secret)) > 0 || len(validation.IsConfigMapKey(key)) > 0:
			c.wrong("%s: %q: the Secret is called as the folder and its key as the file, and %s/%s cannot be called so", need.path, need.File, secret, key)
		default:
			keys[dir] = append(keys[dir], key)
		}
	}
	p.Env = sorted(p.Env)
	for _, dir := range slices.Sorted(maps.Keys(keys)) {
		p.Secrets = append(p.Secrets, secretDir{Dir: dir, Name: path.Base(dir), Keys: sorted(keys[dir])})
	}
}

const (
	forState   = "the cursor and files"
	forSecrets = "secrets"
)

// claims are the folders that volumes are mounted at, and their purposes.
type claims struct {
	used map[string]string
	errs []error
}

func (c *claims) wrong(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// claim takes the folder of a file for a volume, if it can be one.
func (c *claims) claim(key, file, what string) (dir string, ok bool) {
	dir = path.Dir(file)
	switch {
	case !path.IsAbs(file) || path.Clean(file) != file:
		c.wrong("%s: %q: in a container a file is named by its whole path, without . and .. in it", key, file)
		return "", false
	case slices.Contains(systemDirs, dir):
		c.wrong("%s: %q: a volume at %s would cover what is there; use a folder below it", key, file, dir)
		return "", false
	}
	for _, other := range slices.Sorted(maps.Keys(c.used)) {
		// Within a volume that cannot be written to there is no place to mount another one.
		apart := c.used[other] != what || what != forState && dir != other
		if apart && (within(dir, other) || within(other, dir)) {
			c.wrong("%s: %q: %s is for %s; use another folder", key, file, other, c.used[other])
			return "", false
		}
	}
	c.used[dir] = what
	return dir, true
}

// within reports whether a folder is another one, or in it.
func within(dir, outer string) bool {
	return dir == outer || strings.HasPrefix(dir, strings.TrimSuffix(outer, "/")+"/")
}

// sorted returns the texts in their order, each once.
func sorted(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }
