// FlashInfer's headers name this one and use nothing of it; the toolkit here does not have it.
#pragma once
