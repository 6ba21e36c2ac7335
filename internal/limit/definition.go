package limit

// Limits on one tool, prompt or resource definition.
const ()

func definitionRows() []Row {
	return nil
}
