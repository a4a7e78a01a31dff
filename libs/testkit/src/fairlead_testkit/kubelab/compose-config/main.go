// Command compose-config prints docker-compose.yml as JSON, as `docker-compose config --format json` does: with the
// loader that docker-compose is made of, a tenth of its packages.
//
//	compose-config FOLDER [PROFILE...]
package main

import (
	"context"
	"log"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	log.SetFlags(0)
	options, err := cli.NewProjectOptions(nil,
		cli.WithWorkingDirectory(os.Args[1]),
		cli.WithOsEnv,
		cli.WithEnvFiles(),
		cli.WithDotEnv,
		cli.WithConfigFileEnv,
		cli.WithDefaultConfigPath,
		cli.WithDefaultProfiles(os.Args[2:]...),
	)
	if err != nil {
		log.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	written, err := project.MarshalJSON()
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(written)
}
